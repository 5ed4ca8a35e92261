"""A broker's process in simulated time: replica manager, coordinators, control plane, logs."""
