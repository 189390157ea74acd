#pragma once

#include "cairn/cuda/internal/launcher.cuh"
#include "cairn/cuda/internal/machine.h"
