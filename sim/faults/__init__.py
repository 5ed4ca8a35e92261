"""What goes wrong: faults as data, and the calendar that starts and heals them."""
