#!/usr/bin/env python3
"""A second implementation of the published vectors, in plain Python: nothing but the standard library.

    python3 crates/crypto/vectors/check.py

Ristretto255 after RFC 9496, X25519 after RFC 7748, ChaCha20 after RFC 8439, HKDF after RFC 5869, and the transcript and
the proofs after the comments of the modules. Ranges of values (Bulletproofs+ of another library) are not checked here. Slow,
not constant time, and fit for nothing but checking.
"""

import hashlib, hmac, json, pathlib, struct, sys

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) ** 2 % P


class Refused(Exception):
    pass


def is_negative(x):
    return x & 1


def absolute(x):
    return P - x if is_negative(x) else x


def sqrt_ratio(u, v):
    r = u * pow(v, 3, P) % P * pow(u * pow(v, 7, P) % P, (P - 5) // 8, P) % P
    check = v * r * r % P
    correct, flipped, flipped_i = check == u % P, check == -u % P, check == -u * SQRT_M1 % P
    if flipped or flipped_i:
        r = r * SQRT_M1 % P
    return correct or flipped, absolute(r)


INVSQRT_A_MINUS_D = sqrt_ratio(1, (-1 - D) % P)[1]
SQRT_AD_MINUS_ONE = sqrt_ratio((-D - 1) % P, 1)[1]
# RFC 9496 fixes the sign of this constant: it is the odd root.
if SQRT_AD_MINUS_ONE != 25063068953384623474111414158702152701244531502492656460079210482610430750235:
    SQRT_AD_MINUS_ONE = P - SQRT_AD_MINUS_ONE
IDENTITY = (0, 1, 1, 0)


def add(a, b):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = a, b
    e, f = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * D * t1 * t2 % P, 2 * z1 * z2 % P
    e, f, g, h = f - e, d - c, d + c, f + e
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def negate(a):
    return (-a[0] % P, a[1], a[2], -a[3] % P)


def multiply(scalar, point):
    result, scalar = IDENTITY, scalar % Q
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def combine(*terms):
    result = IDENTITY
    for scalar, point in terms:
        result = add(result, multiply(scalar, point))
    return result


def equal(a, b):
    return (a[0] * b[1] - a[1] * b[0]) % P == 0 or (a[1] * b[1] - a[0] * b[0]) % P == 0


def encode(point):
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    inverse = sqrt_ratio(1, u1 * u2 * u2 % P)[1]
    d1, d2 = u1 * inverse % P, u2 * inverse % P
    z_inverse = d1 * d2 * t % P
    if is_negative(t * z_inverse % P):
        x, y, d = y * SQRT_M1 % P, x * SQRT_M1 % P, d1 * INVSQRT_A_MINUS_D % P
    else:
        d = d2
    if is_negative(x * z_inverse % P):
        y = -y % P
    return absolute(d * (z - y) % P).to_bytes(32, "little")


def decode(data):
    s = int.from_bytes(data, "little")
    if s >= P or is_negative(s):
        raise Refused("PointNotCanonical")
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inverse = sqrt_ratio(1, v * u2 * u2 % P)
    x_den, y_den = inverse * u2 % P, inverse * inverse * u2 * v % P
    x, y = absolute(2 * s * x_den % P), u1 * y_den % P
    t = x * y % P
    if not square or is_negative(t) or y == 0:
        raise Refused("PointNotCanonical")
    if equal((x, y, 1, t), IDENTITY):
        raise Refused("IdentityPoint")
    return (x, y, 1, t)


def map_to_point(data):
    t = int.from_bytes(data, "little") & (2**255 - 1)
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * ONE_MINUS_D_SQ % P, (-1 - r * D) * (r + D) % P
    square, s = sqrt_ratio(u, v)
    if not square:
        s = -absolute(s * t % P) % P
    c = -1 if square else r
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1, w2, w3 = 2 * s * v % P, n * SQRT_AD_MINUS_ONE % P, (1 - s * s) % P, (1 + s * s) % P
    return (w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P)


def generator(family, index):
    name = family.encode()
    data = b"sottovoce/generators/v1" + struct.pack("<Q", len(name)) + name + struct.pack("<Q", index)
    wide = hashlib.sha512(data).digest()
    return add(map_to_point(wide[:32]), map_to_point(wide[32:]))


def scalar(data):
    number = int.from_bytes(data, "little")
    if number >= Q:
        raise Refused("ScalarNotReduced")
    return number


class Transcript:
    def __init__(self, protocol, context):
        self.data = b""
        self.append("format", b"sottovoce/proofs/v1")
        self.append("protocol", protocol.encode())
        self.append("task", bytes.fromhex(context["task"]))
        self.append("round", struct.pack("<Q", context["round"]))
        self.append("sender", bytes.fromhex(context["sender"]))
        self.append("board", bytes.fromhex(context["board"]))

    def frame(self, kind, label, data):
        self.data += kind + struct.pack("<I", len(label)) + label.encode() + struct.pack("<Q", len(data)) + data

    def append(self, label, data):
        self.frame(b"a", label, data)

    def append_number(self, label, number):
        self.frame(b"n", label, struct.pack("<Q", number))

    def append_list(self, label, items):
        self.append_number(label, len(items))
        for item in items:
            self.append(label, item)

    def challenge(self, label):
        self.frame(b"c", label, b"")
        state = hashlib.sha512(self.data).digest()
        self.data = b"next" + state
        return int.from_bytes(hashlib.sha512(b"challenge" + state).digest(), "little") % Q


def parts(proof, kinds):
    """Points and scalars of a proof; the reason for the first that is wrong."""
    read = []
    for kind in kinds:
        if len(proof) < 32:
            raise Refused("TooShort")
        part, proof = proof[:32], proof[32:]
        read.append((part, decode(part)) if kind == "p" else scalar(part))
    if proof:
        raise Refused("TrailingBytes")
    return read


G, H = [generator("value", i) for i in range(8)], generator("blinding", 0)


def chacha20(key, nonce, length):
    def rotate(x, n):
        return (x << n | x >> 32 - n) & 0xFFFFFFFF

    def quarter(s, a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] = rotate(s[z] ^ s[x], n)

    out = b""
    for counter in range((length + 63) // 64):
        start = list(struct.unpack("<4I8II3I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce))
        s = start[:]
        for _ in range(10):
            for i in range(4):
                quarter(s, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(s, start)))
    return out[:length]


def x25519(secret, public):
    k = int.from_bytes(secret, "little") & ~7 & (2**255 - 1) | 2**254
    u = int.from_bytes(public, "little") & (2**255 - 1)
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in range(254, -1, -1):
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        # With E = AA - BB, the RFC's AA + 121665 E is BB + 121666 E.
        x2, z2 = aa * bb % P, (aa - bb) * (bb + 121666 * (aa - bb)) % P
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def check_generator(case):
    return encode(generator(case["family"], case["index"])).hex() == case["point"]


def check_fixed_point(case):
    steps = case["value"] / case["step"]
    if abs(steps) >= 2.0**62:
        return case["integer"] is None
    integer = round(steps)  # Python rounds ties to even, as the crate does.
    ring, field = (integer % 2**64).to_bytes(8, "little"), (integer % Q).to_bytes(32, "little")
    return [case["integer"], case["ring"], case["scalar"]] == [integer, ring.hex(), field.hex()]


def check_pad(case):
    secret, other, task = (bytes.fromhex(case[name]) for name in ("secret", "other_public", "task"))
    if int.from_bytes(other, "little") >= P:
        raise Refused("PublicKeyNotCanonical")
    public = x25519(secret, (9).to_bytes(32, "little"))
    if public == other:
        raise Refused("OwnPublicKey")
    shared = x25519(secret, other)
    if shared == bytes(32):
        raise Refused("SmallOrder")
    extracted = hmac.digest(b"sottovoce/pair/v1", shared, "sha256")
    pair = hmac.digest(extracted, task + min(public, other) + max(public, other) + b"\x01", "sha256")
    direction = b"up\0\0" if case["direction"] == "up" else b"down"
    key = chacha20(pair, direction + struct.pack("<Q", case["round"]), 32)
    words = struct.unpack("<5Q", chacha20(key, b"ring" + bytes(8), 40))
    subtracts = public > other
    pad = [struct.pack("<Q", -word % 2**64 if subtracts else word).hex() for word in words]
    return [case["public"], case["pad"], case["revealed"]] == [public.hex(), pad, (key + bytes([subtracts])).hex()]


def check_commitment(case):
    point = decode(bytes.fromhex(case["commitment"]))
    values = [scalar(bytes.fromhex(value)) for value in case["values"]]
    opened = combine(*zip(values, G), (scalar(bytes.fromhex(case["blinding"])), H))
    if not equal(point, opened):
        raise Refused("OpeningMismatch")
    return True


def check_antisymmetry(case):
    one, other = (decode(bytes.fromhex(case[name])) for name in ("one", "other"))
    if not equal(one, negate(other)):
        raise Refused("NotAntisymmetric")
    return True


def check_opening(case):
    encoded = [bytes.fromhex(point) for point in case["commitments"]]
    points = [decode(point) for point in encoded]
    (message, t), blinding, *values = parts(bytes.fromhex(case["proof"]), "ps" + "s" * case["dimension"])
    transcript = Transcript("opening", case["context"])
    transcript.append_number("dimension", case["dimension"])
    transcript.append_list("commitment", encoded)
    y = transcript.challenge("y")
    transcript.append("message", message)
    e = transcript.challenge("e")
    left = combine(*zip(values, G), (blinding, H))
    right = add(t, combine(*((e * pow(y, j, Q), point) for j, point in enumerate(points))))
    if not equal(left, right):
        raise Refused("OpeningProof")
    return True


def check_sum(case):
    encoded = [bytes.fromhex(point) for point in case["commitments"]]
    points = [decode(point) for point in encoded]
    published = [bytes.fromhex(number) for number in case["published"]]
    numbers = [scalar(number) for number in published]
    (message, t), answer = parts(bytes.fromhex(case["proof"]), "ps")
    transcript = Transcript("sum", case["context"])
    transcript.append_list("commitment", encoded)
    transcript.append_list("published", published)
    transcript.append("message", message)
    e = transcript.challenge("e")
    right = combine((1, t), *((e, point) for point in points), *((-e * x, g) for x, g in zip(numbers, G)))
    if not equal(multiply(answer, H), right):
        raise Refused("SumProof")
    return True


def check_bit(case):
    commitment = bytes.fromhex(case["commitment"])
    (m0, t0), (m1, t1), e0, z0, z1 = parts(bytes.fromhex(case["proof"]), "ppsss")
    c = decode(commitment)
    transcript = Transcript("bit", case["context"])
    transcript.append("commitment", commitment)
    transcript.append("message 0", m0)
    transcript.append("message 1", m1)
    e1 = (transcript.challenge("e") - e0) % Q
    zero = equal(multiply(z0, H), combine((1, t0), (e0, c)))
    one = equal(multiply(z1, H), combine((1, t1), (e1, c), (-e1, G[0])))
    if not (zero and one):
        raise Refused("BitProof")
    return True


def check_link(case):
    vector, coordinates = bytes.fromhex(case["vector"]), [bytes.fromhex(point) for point in case["coordinates"]]
    w, points = decode(vector), [decode(point) for point in coordinates]
    (t, t_point), (u, u_point), a, b, *values = parts(bytes.fromhex(case["proof"]), "ppss" + "s" * len(points))
    transcript = Transcript("link", case["context"])
    transcript.append("vector", vector)
    transcript.append_list("coordinate", coordinates)
    y = transcript.challenge("y")
    transcript.append("T", t)
    transcript.append("U", u)
    e = transcript.challenge("e")
    inner = sum(pow(y, j, Q) * value for j, value in enumerate(values))
    whole = equal(combine(*zip(values, G), (a, H)), combine((1, t_point), (e, w)))
    weighted = [(e * pow(y, j, Q), point) for j, point in enumerate(points)]
    each = equal(combine((inner, G[0]), (b, H)), combine((1, u_point), *weighted))
    if not (whole and each):
        raise Refused("LinkProof")
    return True


def beacon_bits(case):
    transcript = Transcript("beacon", case["context"])
    transcript.append("beacon", bytes.fromhex(case["beacon"]))
    transcript.append_number("bits", case["bits"])
    state = hashlib.sha512(transcript.data).digest()
    key = hashlib.sha512(b"digest" + state).digest()[:32]
    stream = chacha20(key, b"beac" + bytes(8), (case["bits"] + 7) // 8)
    return [stream[i // 8] >> i % 8 & 1 for i in range(case["bits"])]


def check_noise(case):
    count = case["bits"]
    rounds = (count - 1).bit_length()
    n = 1 << rounds
    bits, share = bytes.fromhex(case["bits_commitment"]), bytes.fromhex(case["share"])
    b_point, v_point = decode(bits), decode(share)
    read = parts(bytes.fromhex(case["proof"]), "pppsss" + "pp" * rounds + "ss")
    (s, s_point), (t1, t1_point), (t2, t2_point), t, tau, mu, *messages, a, b = read
    drawn = beacon_bits(case)
    weights, constant = [(1 - 2 * bit) % Q for bit in drawn], (sum(drawn) - count // 2) % Q
    little = lambda number: number.to_bytes(32, "little")
    transcript = Transcript("bit sum", case["context"])
    transcript.append("bits", bits)
    transcript.append_list("weights", [little(weight) for weight in weights])
    transcript.append("constant", little(constant))
    transcript.append("total", share)
    transcript.append("S", s)
    y, z = transcript.challenge("y"), transcript.challenge("z")
    transcript.append("T1", t1)
    transcript.append("T2", t2)
    x = transcript.challenge("x")
    transcript.append_list("answers", [little(number) for number in (t, tau, mu)])
    w = transcript.challenge("w")
    weights += [0] * (n - count)
    delta = ((z - z * z) * sum(pow(y, i, Q) for i in range(n)) - z**3 * sum(weights)) % Q
    left = combine((t, G[0]), (tau, H))
    right = combine((z * z, v_point), (delta - z * z * constant, G[0]), (x, t1_point), (x * x, t2_point))
    # The inner product argument, by folding generators as the protocol says it, and not by the verifier's short cut.
    inverse = pow(y, Q - 2, Q)
    lefts = [generator("left", i) for i in range(n)]
    rights = [multiply(pow(inverse, i, Q), generator("right", i)) for i in range(n)]
    p = combine((1, b_point), (x, s_point), (-mu, H), (w * t, generator("product", 0)))
    for i in range(n):
        factor = (z * pow(y, i, Q) + z * z * weights[i]) % Q
        p = add(p, combine((-z, lefts[i]), (factor, rights[i])))
    for (a_bytes, a_point), (b_bytes, b_point) in zip(messages[::2], messages[1::2]):
        transcript.append("A", a_bytes)
        transcript.append("B", b_bytes)
        u = transcript.challenge("u")
        v, half = pow(u, Q - 2, Q), len(lefts) // 2
        p = combine((1, p), (u * u, a_point), (v * v, b_point))
        lefts = [combine((v, lefts[i]), (u, lefts[half + i])) for i in range(half)]
        rights = [combine((u, rights[i]), (v, rights[half + i])) for i in range(half)]
    opened = combine((a, lefts[0]), (b, rights[0]), (a * b * w, generator("product", 0)))
    if not (equal(left, right) and equal(p, opened)):
        raise Refused("NoiseProof")
    return True


def main():
    folder = pathlib.Path(__file__).parent
    names = ["generators", "fixed-point", "pads", "commitments", "antisymmetry", "opening", "sum", "bit", "link", "noise"]
    checked, wrong = 0, []
    for name in names:
        for case in json.loads((folder / f"{name}.json").read_text()):
            check = globals()["check_" + case["kind"].replace("-", "_")]
            try:
                outcome = "accept" if check(case) else "differs"
            except Refused as refused:
                outcome = str(refused)
            checked += 1
            if outcome != case["expect"]:
                wrong.append(f"{name}.json, {case['name']}: {outcome}, and not {case['expect']}")
    print("\n".join(wrong + [f"{checked} cases checked, {len(wrong)} wrong"]))
    return 1 if wrong or checked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
