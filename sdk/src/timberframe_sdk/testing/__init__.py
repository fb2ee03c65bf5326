"""For tests of devices and of the frame: a device unlike others, and memory that shows where kernels go astray."""
