"""The numbers of contacts in maximal coordinates, and functions that read and write them."""

import types

import warp as wp
from newton_like.kernels.registration import inlined

# Numbers of a contact, each in a row of its chunk: points about the centres of mass in link axes, normal, sum of margins, material ...
POINT_A, POINT_B, NORMAL_AT, MARGINS, MU_AT, REBOUND, BIAS, GIVE = 0, 3, 6, 9, 10, 11, 12, 13
# ... impulses along the normal and both tangents; arms, gap and approach of a sub-step; and, if forces are reported, sums over the
# sub-steps of a step of the impulses on the second body, and of their moments about the centre of mass of the first one
IMPULSES, ARM_A, ARM_B, GAP, APPROACH, SUMS = 14, 17, 20, 23, 24, 25
# ... and radii of round shapes, whose points are on their axes
RADIUS_A, RADIUS_B = 31, 32
# ... and the normal velocity below which a contact begins with an impact; in this sub-step 1 for those that do so, 2 for those that need
# more passes still, else 0
BELOW, IMPACT = 33, 34
# ... and responses of velocities to impulses: the inverse of the normal one, the inverse of the larger one along the tangents, those of the
# tangents to the normal, and those along both tangents and between them, divided by the larger one
MASS, TANGENT_MASS, CROSS, SHARES = 35, 36, 37, 39
# ... and velocities along the tangents at the start of the sub-step; the speed from which on the contact needs further passes
SLIP, AT_MOST = 42, 44
# ... and from the centre of mass of the first body to that of the second one at the start of the step
APART = 45
# ... and the normal impulse that this sub-step, or the one before, began with
BEGUN = 48
# ... and `GIVE` while shapes overlap deeply
DEEP_GIVE = 49
# ... and one if a joint constrains one of the bodies, other than a joint to the world at contacts with it
HELD = 50
CONTACT_NUMBERS = 51


def touching_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the structs ``Touching`` and ``Responses``, and functions that read and write numbers of contacts."""
    real, lane, Vec3, Sym3 = m.real, m.lane, m.Vec3, m.Sym3

    @wp.struct
    class Touching:
        """Contacts of a chunk: their numbers, and the slots of their bodies.

        at, room: the first number of the chunk, and the distance of rows; report: whether impulses of sub-steps are added up; strong:
        whether a contact of this sub-step may need further passes; colours: number of colours that contacts have;
        extra_at, extra, law, laws: numbers of contacts with laws, see `newton_like.kernels.solvers.xpbd.contact_laws`.
        """

        numbers: wp.array[real]
        body_a: wp.array[int]
        body_b: wp.array[int]
        at: int
        room: int
        first: int
        dummy: int
        report: int
        extra_at: int
        extra: wp.array[real]
        law: wp.array[int]
        laws: wp.array[real]
        strong: int
        colours: int

    @wp.struct
    class Responses:
        """Of both bodies of contacts: inverse inertia, and the arm of an impulse. For a body on a pivot, those about the anchor."""

        ia: Sym3
        ib: Sym3
        ra: Vec3
        rb: Vec3

    @inlined
    def own_responses(ia: Sym3, ib: Sym3, ra: Vec3, rb: Vec3) -> Responses:
        """The responses of bodies that no contact finds on a pivot."""
        out = Responses()
        out.ia = ia
        out.ib = ib
        out.ra = ra
        out.rb = rb
        return out

    @inlined
    def of_contact(K: wp.ref[Touching], i: int, k: int) -> lane:
        return m.fetch_run(K.numbers, K.at + i * K.room + k)

    @inlined
    def contact_put(K: wp.ref[Touching], i: int, k: int, valid: int, x: lane):
        m.deposit_some(K.numbers, K.at + i * K.room + k, valid, x)

    @inlined
    def vec_of_contact(K: wp.ref[Touching], i: int, k: int) -> Vec3:
        return m.vec(of_contact(K, i, k), of_contact(K, i + 1, k), of_contact(K, i + 2, k))

    @inlined
    def add_vec_of_contact(K: wp.ref[Touching], i: int, k: int, valid: int, a: Vec3):
        b = m.add3(vec_of_contact(K, i, k), a)
        contact_put(K, i, k, valid, b.x)
        contact_put(K, i + 1, k, valid, b.y)
        contact_put(K, i + 2, k, valid, b.z)

    @m.func
    def in_cone(old1: lane, old2: lane, u1: lane, u2: lane, mass1: lane, mass2: lane, bound: lane) -> tuple[lane, lane]:
        """Impulses along two tangents that stop the velocities u, or are as large as `bound` and opposite to them.

        Both tangents respond with masses of their own. Beyond the cone the step has the smaller one in all directions: otherwise the
        friction of a steady slip would be along the impulses that stop it, and points of one surface would turn the body.
        """
        one = m.fnma(u1, mass1, old1)
        two = m.fnma(u2, mass2, old2)
        slips = m.fma(one, one, m.mul(two, two))
        square = m.mul(bound, bound)
        least = m.smaller(mass1, mass2)
        one = m.where_lt(square, slips, m.fnma(u1, least, old1), one)
        two = m.where_lt(square, slips, m.fnma(u2, least, old2), two)
        shrink = m.shrink(bound, m.fma(one, one, m.fma(two, two, m.fill(real(1.0e-30)))))
        return m.mul(one, shrink), m.mul(two, shrink)

    return {name: value for name, value in locals().items() if name not in ("m", "real", "lane", "Vec3", "Sym3")}
