"""From a scenario's models to nodes: configurations of the machines, hosts, disks and workloads."""
