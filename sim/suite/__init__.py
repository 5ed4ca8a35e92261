"""Many runs: checked in parallel, remembered, compared with earlier ones, and explained."""
