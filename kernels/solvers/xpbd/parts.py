"""Parts of the step that some models do not need."""

import types

import warp as wp


def line_functions(m: types.SimpleNamespace, lines: bool):
    """The struct of lines, and functions that pass over the lines of a chunk; without lines they do nothing."""
    real = m.real
    if not lines:

        @wp.struct
        class Lines:
            force: wp.array[real]
            target_q: wp.array[real]
            target_qd: wp.array[real]

        @wp.func
        def no_sweep(
            stage: int, X: wp.ref[Lines], c: int, B: wp.array[real], at: int, stride: int, h: real, share: real
        ):
            """There are no lines."""

        return Lines, no_sweep

    @wp.func
    def sweep_lines(
        stage: int, X: wp.ref[m.Lines], c: int, B: wp.array[real], at: int, stride: int, h: real, share: real
    ):
        """Passes over all lines of a chunk: 0 prepares them (`share`: the largest speed of an equation), 1 applies this share of their kept
        impulses, 2 solves."""
        for n in range(X.of_chunk[c], X.of_chunk[c + 1]):
            if stage == 0:
                m.line_prepare(X, n, B, at, stride, h, share)
            if stage == 1:
                m.line_start(X, n, B, at, stride, h, share)
            if stage == 2:
                m.line_solve(X, n, B, at, stride, h)

    return m.Lines, sweep_lines


def joint_functions(m: types.SimpleNamespace, joints: bool):
    """``joint_prepare``, ``joint_start`` and ``joint_solve``; without joints they do nothing."""
    if joints:
        return m.joint_prepare, m.joint_start, m.joint_solve
    real, Joints = m.real, m.Joints

    @wp.func
    def no_prepare(
        J: wp.ref[Joints], b: int, B: wp.array[real], at: int, stride: int, h: real, push_speed: real, first: int
    ):
        """There are no joints."""

    @wp.func
    def no_start(J: wp.ref[Joints], b: int, B: wp.array[real], at: int, stride: int, share: real):
        """There are no joints."""

    @wp.func
    def no_solve(J: wp.ref[Joints], b: int, B: wp.array[real], at: int, stride: int, over: real, h: real):
        """There are no joints."""

    return no_prepare, no_start, no_solve
