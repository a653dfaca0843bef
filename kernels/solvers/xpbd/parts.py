"""Parts of the step that some models do not need."""

import types

import warp as wp
from newton_like.kernels.solvers.xpbd.team import share_start, wait_for_all


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


def tree_functions(m: types.SimpleNamespace, trees: bool):
    """The struct of trees, and functions that remember the velocities of bodies before the forces of a sub-step and solve the joints of the
    trees of a chunk; without trees they do nothing."""
    real = m.real
    if not trees:

        @wp.struct
        class Trees:
            none: int

        @wp.func
        def no_memory(T: wp.ref[Trees], B: wp.array[real], r: m.BodyRef, tree_at: int):
            """There are no trees."""

        @wp.func
        def no_solve(
            T: wp.ref[Trees], c: int, B: wp.array[real], at: int, stride: int, tree_at: int, rotors: int, again: int, member: int,
            members: int, pause: wp.uint64, sync: wp.array[int],
        ):  # fmt: skip
            """There are no trees."""

        return Trees, no_memory, no_solve

    @wp.func
    def solve_trees(
        T: wp.ref[m.Trees], c: int, B: wp.array[real], at: int, stride: int, tree_at: int, rotors: int, again: int, member: int,
        members: int, pause: wp.uint64, sync: wp.array[int],
    ):  # fmt: skip
        """Solves the joints of the trees of chunk c; `again`: in a further pass."""
        first = T.stage_at[c]
        behind = T.stage_at[c + 1]
        begin = int(0)
        count = int(0)
        if behind > first:
            begin = T.stages[first, 0]
            count = T.stages[behind - 1, 1] - begin
            if member == 0:
                T.changed[c] = 0
        wait_for_all(sync, c, members, pause)
        for n in range(begin + share_start(count, member, members), begin + share_start(count, member + 1, members)):
            if again == 0:
                m.tree_copy(T, n)
            if m.tree_rows(T, n, B, at, stride, again) != 0:
                T.changed[c] = 1
        wait_for_all(sync, c, members, pause)
        for k in range(first, behind):
            begin = T.stages[k, 0]
            count = T.stages[k, 1] - begin
            for n in range(
                begin + share_start(count, member, members), begin + share_start(count, member + 1, members)
            ):
                if again == 0 or T.changed[c] != 0:
                    m.tree_up(T, n, B, at, stride, tree_at, again)
                else:
                    m.tree_lack(T, n, stride, tree_at)
            wait_for_all(sync, c, members, pause)
        begin = T.root_at[c]
        count = T.root_at[c + 1] - begin
        for n in range(begin + share_start(count, member, members), begin + share_start(count, member + 1, members)):
            m.tree_root(T, n, B, at, stride, tree_at)
        wait_for_all(sync, c, members, pause)
        for i in range(first, behind):
            k = first + behind - 1 - i
            begin = T.stages[k, 0]
            count = T.stages[k, 1] - begin
            for n in range(
                begin + share_start(count, member, members), begin + share_start(count, member + 1, members)
            ):
                m.tree_down(T, n, B, at, stride, tree_at, rotors)
            wait_for_all(sync, c, members, pause)

    return m.Trees, m.tree_before, solve_trees
