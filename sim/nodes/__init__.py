"""SimPy shells around the machines: pay, decide, perform."""
