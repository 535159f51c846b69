#!/usr/bin/env python3
"""A second implementation of the published vectors of two-party computation, in plain Python: nothing but the standard library.

    python3 crates/crypto/vectors/check_two_party.py

AES-128 after FIPS 197, the hash of labels after Guo, Katz, Wang and Yu 2020, half gates after Zahur, Rosulek and Evans 2015, base transfer after
Chou and Orlandi 2015, extension after Ishai et al. 2003, and the messages after the comments of the modules; groups and ChaCha20 come from check.py.
Circuits are taken from the answers, and their digests computed. Slow, not constant time, and fit for nothing but checking.
"""

import hashlib, json, pathlib, struct, sys

from check import Q, Refused, Transcript, add, chacha20, combine, decode, encode, multiply, negate

BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))
LANES, LABELS, AIM, GATES = 32, 1 << 17, 1 << 13, 64


def times(a, b):
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def substitute(byte):
    inverse = next((other for other in range(256) if times(byte, other) == 1), 0)
    rotated = [(inverse << i | inverse >> 8 - i) & 255 for i in range(5)]
    return 0x63 ^ rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4]


SBOX = [substitute(byte) for byte in range(256)]
DOUBLE = [times(x, 2) for x in range(256)]


class Aes:
    def __init__(self, key):
        words, constant = [list(key[i : i + 4]) for i in range(0, 16, 4)], 1
        for i in range(4, 44):
            word = words[-1]
            if i % 4 == 0:
                word = [SBOX[byte] for byte in word[1:] + word[:1]]
                word[0] ^= constant
                constant = times(constant, 2)
            words.append([a ^ b for a, b in zip(word, words[-4])])
        self.keys = [sum(words[i : i + 4], []) for i in range(0, 44, 4)]
        self.known = {}

    def block(self, number):
        if number not in self.known:
            state = [a ^ b for a, b in zip(number.to_bytes(16, "little"), self.keys[0])]
            for key in self.keys[1:-1]:
                mixed = []
                for c in range(0, 16, 4):
                    s = [SBOX[state[(c + 5 * r) % 16]] for r in range(4)]
                    everything = s[0] ^ s[1] ^ s[2] ^ s[3]
                    mixed += [s[r] ^ everything ^ DOUBLE[s[r] ^ s[(r + 1) % 4]] for r in range(4)]
                state = [a ^ b for a, b in zip(mixed, key)]
            last = [SBOX[state[(i + 4 * (i % 4)) % 16]] ^ self.keys[-1][i] for i in range(16)]
            self.known[number] = int.from_bytes(bytes(last), "little")
        return self.known[number]


def label_hash(cipher, label, tweak):
    inner = cipher.block(label)
    return cipher.block(inner ^ tweak) ^ inner


def garble(cipher, delta, number, a, b):
    h = lambda label, half: label_hash(cipher, label, 2 * number + half)
    table_g = h(a, 0) ^ h(a ^ delta, 0) ^ (delta if b & 1 else 0)
    table_e = h(b, 1) ^ h(b ^ delta, 1) ^ a
    zero = h(a, 0) ^ (table_g if a & 1 else 0) ^ h(b, 1) ^ (table_e ^ a if b & 1 else 0)
    return table_g, table_e, zero


def evaluate(cipher, number, a, b, table_g, table_e):
    result = label_hash(cipher, a, 2 * number) ^ label_hash(cipher, b, 2 * number + 1)
    return result ^ (table_g if a & 1 else 0) ^ (table_e ^ a if b & 1 else 0)


def little(number):
    return number.to_bytes(16, "little")


def number(text):
    return int.from_bytes(bytes.fromhex(text), "little")


class Generator:
    """ChaCha20Rng: the keystream of its seed."""

    def __init__(self, seed):
        self.stream, self.at = chacha20(seed, bytes(12), 1 << 14), 0

    def take(self, count):
        self.at += count
        return self.stream[self.at - count : self.at]

    def scalar(self):
        return int.from_bytes(self.take(64), "little") % Q


def check_label_hash(case):
    found = label_hash(Aes(bytes.fromhex(case["key"])), number(case["label"]), number(case["tweak"]))
    return {"hash": little(found).hex()} == case["answer"]


def check_gate(case):
    cipher, delta, tables, zeros, got = Aes(bytes.fromhex(case["key"])), number(case["delta"]), b"", [], []
    for lane, (pair, bits) in enumerate(zip(case["labels"], case["bits"])):
        held = [number(label) ^ (delta if bit else 0) for label, bit in zip(pair, bits)]
        a, b = (number(label) ^ (delta if flip else 0) for label, flip in zip(pair, case["negated"]))
        table_g, table_e, zero = garble(cipher, delta, case["gate"] + lane, a, b)
        tables += little(table_g) + little(table_e)
        zeros.append(little(zero).hex())
        got.append(little(evaluate(cipher, case["gate"] + lane, *held, table_g, table_e)).hex())
    return {"tables": tables.hex(), "zeros": zeros, "got": got} == case["answer"]


def transfer_key(binding, opening, index, point, shared):
    data = b"sottovoce/transfer/v1" + binding + opening + struct.pack("<Q", index) + point + encode(shared)
    return hashlib.sha256(data).digest()[:16]


def choose(binding, opening, choices, generator):
    sender, points, keys = decode(opening), b"", []
    for index, choice in enumerate(choices):
        secret = generator.scalar()
        point = encode(combine((secret, BASE), (choice, sender)))
        points += point
        keys.append(transfer_key(binding, opening, index, point, multiply(secret, sender)))
    return points, keys


def both_keys(binding, secret, opening, points, count):
    read = []
    for index in range(count):
        point = points[32 * index : 32 * index + 32]
        if len(point) < 32:
            raise Refused("TooShort")
        read.append((index, point, decode(point)))
    if len(points) > 32 * count:
        raise Refused("TrailingBytes")
    own, pairs = negate(multiply(secret, decode(opening))), []
    for index, point, decoded in read:
        shared = multiply(secret, decoded)
        pairs.append([transfer_key(binding, opening, index, point, p) for p in (shared, add(shared, own))])
    return pairs


def check_base_transfer(case):
    binding, choices = bytes.fromhex(case["binding"]), case["choices"]
    secret = Generator(bytes.fromhex(case["sender_seed"])).scalar()
    own = encode(multiply(secret, BASE))
    opening = bytes.fromhex(case["opening"]) if "opening" in case else own
    points, chosen = choose(binding, opening, choices, Generator(bytes.fromhex(case["receiver_seed"])))
    points = bytes.fromhex(case["points"]) if "points" in case else points
    pairs = both_keys(binding, secret, own, points, len(choices))
    found = {
        "opening": opening.hex(),
        "points": points.hex(),
        "pairs": [[key.hex() for key in pair] for pair in pairs],
        "chosen": [key.hex() for key in chosen],
    }
    return found == case["answer"]


class Receiver:
    def __init__(self, pairs):
        self.columns, self.used = [[Aes(key) for key in pair] for pair in pairs], 0

    def extend(self, choices):
        blocks, message, columns = len(choices), b"", []
        for first, second in self.columns:
            column = [first.block(self.used + i) for i in range(blocks)]
            other = [second.block(self.used + i) for i in range(blocks)]
            message += b"".join(little(t ^ o ^ r) for t, o, r in zip(column, other, choices))
            columns.append(column)
        self.used += blocks
        return message, rows(columns, blocks)


class Sender:
    def __init__(self, keys, delta):
        self.columns, self.delta, self.used = [Aes(key) for key in keys], delta, 0

    def extend(self, message):
        blocks, columns = len(message) // 2048, []
        for i, cipher in enumerate(self.columns):
            column = []
            for block in range(blocks):
                at = 16 * (i * blocks + block)
                sent = int.from_bytes(message[at : at + 16], "little")
                column.append(cipher.block(self.used + block) ^ (sent if self.delta >> i & 1 else 0))
            columns.append(column)
        self.used += blocks
        return rows(columns, blocks)


def rows(columns, blocks):
    bit = lambda i, j: columns[i][j // 128] >> j % 128 & 1
    return [sum(bit(i, j) << i for i in range(128)) for j in range(128 * blocks)]


def check_extension(case):
    delta, seed = number(case["delta"]), bytes.fromhex(case["keys_seed"])
    pairs = [[hashlib.sha256(seed + bytes([i, which])).digest()[:16] for which in (0, 1)] for i in range(128)]
    receiver, sender, batches = Receiver(pairs), Sender([pairs[i][delta >> i & 1] for i in range(128)], delta), []
    for choices in case["choices"]:
        message, got = receiver.extend([number(choice) for choice in choices])
        if "flip" in case:
            at = case["flip"]
            message = message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]
        zeros = sender.extend(message)
        told = lambda labels: hashlib.sha256(b"".join(little(label) for label in labels)).hexdigest()
        batches.append(
            {
                "message": hashlib.sha256(message).hexdigest(),
                "first_got": [little(label).hex() for label in got[:3]],
                "last_zeros": [little(label).hex() for label in zeros[-3:]],
                "got": told(got),
                "zeros": told(zeros),
            }
        )
    return batches == case["answer"]


def literal(text):
    return int(text.lstrip("!")), text.startswith("!")


class Circuit:
    """A circuit as an answer shows it; its digest is computed."""

    def __init__(self, shown):
        self.inputs = [shown["garbler"], shown["evaluator"], shown["joint"]]
        self.slots, self.gates, self.outputs = shown["slots"], [], []
        gates = [gate.split() for gate in shown["gates"].split("; ")] if shown["gates"] else []
        for kind, left, right, out in gates:
            self.gates.append((kind, literal(left), literal(right), int(out)))
        for output in shown["outputs"].split():
            self.outputs.append(("=", int(output[1:])) if output[0] == "=" else ("w", literal(output)))
        self.ands = sum(kind == "a" for kind, *_ in self.gates)
        self.transferred = self.inputs[1] + self.inputs[2]
        self.lanes = max(1, min(LANES, LABELS // max(1, self.slots)))
        most = AIM // max(8, self.transferred)
        self.batch_max = most // self.lanes * self.lanes if most > self.lanes else max(1, most)
        data = b"sottovoce/circuit/v1" + struct.pack("<5Q", *self.inputs, len(self.gates), len(self.outputs))
        for kind, (left, n), (right, m), out in self.gates:
            data += struct.pack("<B3I", 1 if kind == "x" else 2 + n + 2 * m, left, right, out)
        for kind, value in self.outputs:
            data += struct.pack("<B3I", 6, value, 0, 0) if kind == "=" else struct.pack("<B3I", 7, value[0], value[1], 0)
        self.digest = hashlib.sha512(data).digest()[:32]


def on_the_way(case, name, message):
    tamper = case.get("tamper") or {}
    if tamper.get("message") == name:
        at, message = tamper.get("at", 0), bytearray(message)
        put = bytes.fromhex(tamper.get("put", ""))
        message[at : at + len(put)] = put
        if "xor" in tamper:
            message[at] ^= tamper["xor"]
        message = bytes(message[: tamper.get("cut", len(message))]) + bytes.fromhex(tamper.get("append", ""))
    return bytes(message)


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        if len(self.data) < count:
            raise Refused("TooShort")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def kind(self, *expected):
        (kind,) = self.take(1)
        if kind not in expected:
            raise Refused("UnknownTag")
        return kind

    def instances(self, circuit):
        (instances,) = struct.unpack("<I", self.take(4))
        if not 0 < instances <= circuit.batch_max:
            raise Refused("WrongLength")
        return instances

    def finish(self):
        if self.data:
            raise Refused("TrailingBytes")


def need(condition, reason):
    if not condition:
        raise Refused(reason)


def groups(circuit, instances):
    return [(first, min(circuit.lanes, instances - first)) for first in range(0, instances, circuit.lanes)]


def pieces(circuit, lanes):
    """The gates of each message of a group."""
    piece, ands = [], 0
    for gate in circuit.gates:
        if gate[0] == "a":
            if ands == GATES:
                yield piece, ands
                piece, ands = [], 0
            ands += 1
        piece.append(gate)
    yield piece, ands


def bits_of(rows):
    return [[value >> i & 1 for value, width in row for i in range(width)] for row in rows]


def words(bits, count):
    data = bits.take(16 * ((count + 127) // 128))
    return [data[i // 8] >> i % 8 & 1 for i in range(8 * len(data))]


def share(circuit, bits):
    flat = [bit for row in bits for bit in row]
    return bytes(sum(bit << i for i, bit in enumerate(flat[at : at + 8])) for at in range(0, len(flat), 8))


def garblers_batch(circuit, cipher, delta, labels, first_gate, mine, generator, head):
    """All messages of tables, before anybody tampers with them, and the garbler's bits of the share."""
    seed = generator.take(16)
    flips, stream = words(generator, len(mine) * circuit.inputs[2]), Aes(seed)
    messages, bits = [], [[0] * len(circuit.outputs) for _ in mine]
    for first, lanes in groups(circuit, len(mine)):
        own, theirs, joint = circuit.inputs
        slots = [[0] * lanes for _ in range(circuit.slots)]
        for lane in range(lanes):
            for i in range(own):
                w = stream.block(first * own + i * lanes + lane)
                slots[i][lane] = w ^ (delta if mine[first + lane][i] else 0)
            for i in range(theirs + joint):
                slots[own + i][lane] = labels[first * circuit.transferred + i * lanes + lane]
            for i in range(joint):
                slots[own + theirs + i][lane] ^= delta if flips[first * joint + i * lanes + lane] else 0
        gate = first_gate + first * circuit.ands
        for piece, _ in pieces(circuit, lanes):
            message = head + struct.pack("<I", len(messages)) + (b"" if messages else seed)
            for kind, (left, n), (right, m), out in piece:
                if kind == "x":
                    slots[out] = [a ^ b for a, b in zip(slots[left], slots[right])]
                    continue
                result = []
                for lane in range(lanes):
                    a, b = slots[left][lane] ^ (delta if n else 0), slots[right][lane] ^ (delta if m else 0)
                    table_g, table_e, zero = garble(cipher, delta, gate + lane, a, b)
                    message += little(table_g) + little(table_e)
                    result.append(zero)
                slots[out], gate = result, gate + lanes
            messages.append(message)
        for lane in range(lanes):
            for i, (kind, value) in enumerate(circuit.outputs):
                bits[first + lane][i] = value if kind == "=" else slots[value[0]][lane] & 1 ^ value[1]
    return messages, share(circuit, bits)


def evaluators_batch(circuit, cipher, name, batch, labels, first_gate, instances, messages):
    """The evaluator's bits of the share, from the messages as they arrived."""
    arrived, bits, count, stream = iter(messages), [[0] * len(circuit.outputs) for _ in range(instances)], 0, None
    for first, lanes in groups(circuit, instances):
        slots, gate = [[0] * lanes for _ in range(circuit.slots)], first_gate + first * circuit.ands
        for piece_number, (piece, ands) in enumerate(pieces(circuit, lanes)):
            reader = Reader(next(arrived))
            reader.kind(4)
            named, numbered, order = reader.take(32), *struct.unpack("<QI", reader.take(12))
            seed = reader.take(16) if order == 0 else None
            tables = reader.take(32 * ands * lanes)
            reader.finish()
            need(named == name, "WrongSession")
            need((numbered, order) == (batch, count), "OutOfOrder")
            count, stream = count + 1, Aes(seed) if seed else stream
            if piece_number == 0:
                own = circuit.inputs[0]
                for lane in range(lanes):
                    for i in range(own):
                        slots[i][lane] = stream.block(first * own + i * lanes + lane)
                    for i in range(circuit.transferred):
                        slots[own + i][lane] = labels[first * circuit.transferred + i * lanes + lane]
            at = 0
            for kind, (left, _), (right, _), out in piece:
                if kind == "x":
                    slots[out] = [a ^ b for a, b in zip(slots[left], slots[right])]
                    continue
                result = []
                for lane in range(lanes):
                    table_g, table_e = (int.from_bytes(tables[i : i + 16], "little") for i in (at, at + 16))
                    result.append(evaluate(cipher, gate + lane, slots[left][lane], slots[right][lane], table_g, table_e))
                    at += 32
                slots[out], gate = result, gate + lanes
        for lane in range(lanes):
            for i, (kind, value) in enumerate(circuit.outputs):
                bits[first + lane][i] = 0 if kind == "=" else slots[value[0]][lane] & 1
    return share(circuit, bits)


def read_share(circuit, data):
    reader = Reader(data)
    kind, session, transcript = reader.kind(5, 6), reader.take(32), reader.take(32)
    (batch,) = struct.unpack("<Q", reader.take(8))
    instances = reader.instances(circuit)
    count = instances * len(circuit.outputs)
    bits = reader.take((count + 7) // 8)
    reader.finish()
    need(count % 8 == 0 or bits[-1] >> count % 8 == 0, "TrailingBytes")
    return kind, session, batch, instances, transcript, bits


def combined(circuit, session, mine, theirs):
    mine, theirs = read_share(circuit, mine), read_share(circuit, theirs)
    need((mine[0], theirs[0]) == (5, 6), "UnknownTag")
    need(mine[1] == theirs[1] == session, "WrongSession")
    need(mine[2] == theirs[2], "OutOfOrder")
    need(mine[3] == theirs[3], "WrongLength")
    need(mine[4] == theirs[4], "TranscriptsDiffer")
    bits, width = bytes(a ^ b for a, b in zip(mine[5], theirs[5])), len(circuit.outputs)
    bit = lambda at: bits[at // 8] >> at % 8 & 1
    return [sum(bit(instance * width + i) << i for i in range(width)) for instance in range(mine[3])]


def opened(case, circuit, garbler, evaluator):
    """The base transfer; states of both sides."""
    transcript = Transcript("two-party", case["context"])
    for label in ("evaluator", "aggregator"):
        transcript.append(label, bytes.fromhex(case[label]))
    transcript.append("circuit", circuit.digest)
    digest = lambda: hashlib.sha512(b"digest" + hashlib.sha512(transcript.data).digest()).digest()
    session, secret = digest()[:32], evaluator.scalar()
    own = encode(multiply(secret, BASE))
    opening = on_the_way(case, "opening", b"\x01" + session + own)
    reader = Reader(opening)
    reader.kind(1)
    named, point = reader.take(32), reader.take(32)
    reader.finish()
    need(named == session, "WrongSession")
    delta = int.from_bytes(garbler.take(16), "little") | 1
    points, keys = choose(session, point, [delta >> i & 1 for i in range(128)], garbler)
    choices = on_the_way(case, "choices", b"\x02" + session + points)
    reader = Reader(choices)
    reader.kind(2)
    named, arrived = reader.take(32), reader.take(128 * 32)
    reader.finish()
    need(named == session, "WrongSession")
    pairs = both_keys(session, secret, own, arrived, 128)
    sides, before = [], transcript.data
    for a, b in ((point, points), (own, arrived)):
        transcript.data = before
        transcript.append("opening", a)
        transcript.append("choices", b)
        sides.append((digest()[:32], Aes(digest()[32:48])))
    return session, opening, choices, (Sender(keys, delta), *sides[0]), (Receiver(pairs), *sides[1])


# Circuits by their names, taken from the answers of honest cases, whose digests are compared.
CIRCUITS = {}


def check_session(case):
    circuit = Circuit(CIRCUITS[case["circuit_name"]])
    garbler, evaluator = (Generator(bytes.fromhex(case[name])) for name in ("garbler_seed", "evaluator_seed"))
    session, opening, choices, (sender, name, cipher), (receiver, other_name, other_cipher) = opened(case, circuit, garbler, evaluator)
    batches, first_gate, told = [], 0, lambda message: hashlib.sha256(message).hexdigest()
    for index, batch in enumerate(case["batches"]):
        mine, theirs = bits_of(batch["garbler"]), bits_of(batch["evaluator"])
        count = len(mine)
        drawn = words(evaluator, (count * circuit.transferred + 127) // 128 * 128)
        for first, lanes in groups(circuit, count):
            for i in range(circuit.inputs[1]):
                for lane in range(lanes):
                    drawn[first * circuit.transferred + i * lanes + lane] = theirs[first + lane][i]
        packed = [sum(bit << i for i, bit in enumerate(drawn[at : at + 128])) for at in range(0, len(drawn), 128)]
        columns, held = receiver.extend(packed)
        sent = b"\x03" + other_name + struct.pack("<QI", index, count) + columns
        request = on_the_way(case, "request", sent)
        reader = Reader(request)
        reader.kind(3)
        named, (numbered,) = reader.take(32), struct.unpack("<Q", reader.take(8))
        instances = reader.instances(circuit)
        arrived = reader.take((instances * circuit.transferred + 127) // 128 * 2048)
        reader.finish()
        need(named == name, "WrongSession")
        need(numbered == index, "OutOfOrder")
        need(instances == count, "WrongLength")
        head = b"\x04" + name + struct.pack("<Q", index)
        messages, bits = garblers_batch(circuit, cipher, sender.delta, sender.extend(arrived), first_gate, mine, garbler, head)
        tables = [on_the_way(case, "tables", message) for message in messages]
        # Each side hears what it sent and what arrived.
        heard = lambda parts: hashlib.sha256(b"".join(struct.pack("<Q", len(part)) + part for part in parts)).digest()
        other_bits = evaluators_batch(circuit, other_cipher, other_name, index, held, first_gate, count, tables)
        end = struct.pack("<QI", index, count)
        one = on_the_way(case, "garbler's share", b"\x05" + session + heard([request] + messages) + end + bits)
        two = on_the_way(case, "evaluator's share", b"\x06" + session + heard([sent] + tables) + end + other_bits)
        outputs = combined(circuit, session, one, two)
        shares = {"garblers_share": one.hex(), "evaluators_share": two.hex()}
        batches.append({"request": told(request), "tables": [told(table) for table in tables], **shares, "outputs": outputs})
        first_gate += count * circuit.ands
    shown = dict(CIRCUITS[case["circuit_name"]], digest=circuit.digest.hex())
    return {"circuit": shown, "opening": opening.hex(), "choices": told(choices), "batches": batches} == case["answer"]


def main():
    folder = pathlib.Path(__file__).parent
    checked, wrong = 0, []
    for name in ["label-hash", "gates", "base-transfer", "extension", "session"]:
        cases = json.loads((folder / f"{name}.json").read_text())
        for case in cases:
            if case["kind"] == "session" and case["expect"] == "accept":
                CIRCUITS[case["circuit_name"]] = case["answer"]["circuit"]
        for case in cases:
            check = globals()["check_" + case["kind"].replace("-", "_")]
            try:
                outcome = "accept" if check(case) else "differs"
            except Refused as refused:
                outcome = str(refused)
            checked += 1
            if outcome != case["expect"]:
                wrong.append(f"{name}.json, {case['name']}: {outcome}, and not {case['expect']}")
    print("\n".join(wrong + [f"{checked} cases checked, {len(wrong)} wrong"]))
    return 1 if wrong or checked < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
