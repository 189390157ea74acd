"""Rewrites a traced graph twice: before planning, into a form for which better schedules exist, and after planning,
into modules that follow the schedule."""
