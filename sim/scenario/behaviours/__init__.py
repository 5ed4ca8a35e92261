"""behaviours."""
