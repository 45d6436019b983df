"""Engines that hold events and run SELECTs."""
