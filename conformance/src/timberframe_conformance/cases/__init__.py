"""The inputs that a device is tested with: arrays, layouts, dtypes and the ids of cases."""
