"""Calibration: figures of hardware, fitted to what clients of a real cluster measured."""
