#pragma once

#include "cuda/internal/launcher.cuh"
#include "cuda/internal/machine.h"
