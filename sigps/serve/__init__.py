"""Many jobs on shared devices: which device a job gets, and which job gets a device next."""
