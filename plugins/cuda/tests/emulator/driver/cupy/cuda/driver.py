"""CUDA's driver."""


class CUDADriverError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status
