"use strict";
// Checks this page by itself, with no network: that its text, its terms and its numbers are those
// that were signed, and by whom. Everything is written out here (SHA-2, Ed25519, canonical JSON),
// because a browser offers its own only to pages from a server.
//
// It does not prove the agreement again: the command `fedaccord agreement verify` does that.

// --- Bytes ---------------------------------------------------------------------------------

const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const isHex = (text, length) =>
  typeof text === "string" && text.length === length && /^[0-9a-f]+$/.test(text);

function fromHex(text) {
  return Uint8Array.from({ length: text.length / 2 }, (_, n) => parseInt(text.substr(2 * n, 2), 16));
}

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

const integer = (bytes) => BigInt("0x" + hex(bytes));
const littleEndian = (bytes) => integer(Uint8Array.from(bytes).reverse());

// --- SHA-256 and SHA-512 (FIPS 180-4) ------------------------------------------------------

// The constants are the first bits of the fractional parts of roots of the first prime numbers.
function rootBits(prime, power, bits) {
  const target = BigInt(prime) << BigInt(power * bits);
  let low = 0n;
  let high = 1n << BigInt(bits + 9);
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle ** BigInt(power) <= target) low = middle;
    else high = middle;
  }
  return BigInt.asUintN(bits, low);
}

function primes(count) {
  const found = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime)) found.push(n);
  return found;
}

// Word size in bits, rounds, and the rotations (and shifts) of the four mixing functions.
const SHA256 = variant(32, 64, [[2, 13, 22], [6, 11, 25], [7, 18, 3], [17, 19, 10]]);
const SHA512 = variant(64, 80, [[28, 34, 39], [14, 18, 41], [1, 8, 7], [19, 61, 6]]);

function variant(bits, rounds, mixing) {
  return {
    bits,
    rounds,
    mixing: mixing.map((amounts) => amounts.map(BigInt)),
    start: primes(8).map((prime) => rootBits(prime, 2, bits)),
    constants: primes(rounds).map((prime) => rootBits(prime, 3, bits)),
  };
}

function sha2(message, { bits, rounds, mixing, start, constants }) {
  const size = BigInt(bits);
  const word = (value) => BigInt.asUintN(bits, value);
  const rotate = (value, by) => (value >> by) | word(value << (size - by));
  const [Sigma0, Sigma1] = mixing.slice(0, 2).map(
    ([a, b, c]) => (x) => rotate(x, a) ^ rotate(x, b) ^ rotate(x, c),
  );
  const [sigma0, sigma1] = mixing.slice(2).map(
    ([a, b, c]) => (x) => rotate(x, a) ^ rotate(x, b) ^ (x >> c),
  );
  const width = bits / 8;
  const block = 16 * width;
  const padding = new Uint8Array(block - ((message.length + 2 * width) % block) + 2 * width);
  padding[0] = 0x80;
  let length = BigInt(8 * message.length);
  for (let n = padding.length - 1; length > 0n; n--, length >>= 8n) padding[n] = Number(length & 255n);
  const padded = joined(message, padding);
  let state = start;
  for (let at = 0; at < padded.length; at += block) {
    const schedule = [];
    for (let t = 0; t < rounds; t++) {
      schedule.push(
        t < 16
          ? integer(padded.subarray(at + t * width, at + (t + 1) * width))
          : word(sigma1(schedule[t - 2]) + schedule[t - 7] + sigma0(schedule[t - 15]) + schedule[t - 16]),
      );
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let t = 0; t < rounds; t++) {
      const first = h + Sigma1(e) + ((e & f) ^ (~e & g)) + constants[t] + schedule[t];
      const second = Sigma0(a) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [word(first + second), a, b, c, word(d + first), e, f, g];
    }
    state = [a, b, c, d, e, f, g, h].map((value, n) => word(value + state[n]));
  }
  return fromHex(state.map((value) => value.toString(16).padStart(2 * width, "0")).join(""));
}

const digest = (text) => hex(sha2(utf8(text), SHA256));

// --- Ed25519 (RFC 8032) --------------------------------------------------------------------

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const modulo = (value) => ((value % P) + P) % P;

function power(base, exponent) {
  let result = 1n;
  for (base = modulo(base); exponent > 0n; exponent >>= 1n, base = (base * base) % P) {
    if (exponent & 1n) result = (result * base) % P;
  }
  return result;
}

const inverse = (value) => power(value, P - 2n);
const D = modulo(-121665n * inverse(121666n));
const ROOT_OF_MINUS_1 = power(2n, (P - 1n) / 4n);
const NEUTRAL = [0n, 1n, 1n, 0n];
const BASE = decoded(joined(Uint8Array.of(0x58), new Uint8Array(31).fill(0x66)));

// Points are [X, Y, Z, T] with x = X/Z, y = Y/Z, xy = T/Z (section 5.1.4).
function sum([X1, Y1, Z1, T1], [X2, Y2, Z2, T2]) {
  const A = modulo((Y1 - X1) * (Y2 - X2));
  const B = modulo((Y1 + X1) * (Y2 + X2));
  const C = modulo(2n * T1 * D * T2);
  const twice = modulo(2n * Z1 * Z2);
  const [E, F, G, H] = [B - A, twice - C, twice + C, B + A];
  return [modulo(E * F), modulo(G * H), modulo(F * G), modulo(E * H)];
}

function times(factor, point) {
  let result = NEUTRAL;
  for (; factor > 0n; factor >>= 1n, point = sum(point, point)) {
    if (factor & 1n) result = sum(result, point);
  }
  return result;
}

// The point that 32 bytes stand for (section 5.1.3); null if they stand for none, or
// not in the one way that is allowed.
function decoded(bytes) {
  const number = littleEndian(bytes);
  const sign = number >> 255n;
  const y = BigInt.asUintN(255, number);
  if (y >= P) return null;
  const u = modulo(y * y - 1n);
  const v = modulo(D * y * y + 1n);
  let x = modulo(u * power(v, 3n) * power(u * power(v, 7n), (P - 5n) / 8n));
  if (modulo(v * x * x) === modulo(-u)) x = modulo(x * ROOT_OF_MINUS_1);
  if (modulo(v * x * x) !== u || (x === 0n && sign === 1n)) return null;
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, modulo(x * y)];
}

function encoded([X, Y, Z]) {
  const shrink = inverse(Z);
  const number = modulo(Y * shrink) | ((modulo(X * shrink) & 1n) << 255n);
  return number.toString(16).padStart(64, "0").match(/../g).reverse().join("");
}

// Whether a signature (64 bytes) is by the owner of a public key (32 bytes), on exactly a message.
// S B - h A must be R, encoded byte by byte; a key of small order would prove nothing.
function isSigned(publicKey, signature, message) {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const [R, S] = [signature.subarray(0, 32), littleEndian(signature.subarray(32))];
  const A = decoded(publicKey);
  if (S >= ORDER || A === null) return false;
  if (encoded(times(8n, A)) === encoded(NEUTRAL)) return false;
  const h = littleEndian(sha2(joined(R, publicKey, message), SHA512)) % ORDER;
  const minusA = [modulo(-A[0]), A[1], A[2], modulo(-A[3])];
  return encoded(sum(times(S, BASE), times(h, minusA))) === hex(R);
}

// --- Canonical JSON of values without numbers other than whole ones ------------------------

// By code points, as Python sorts; JavaScript itself sorts by UTF-16 units.
function byCodePoints(one, other) {
  const [a, b] = [Array.from(one), Array.from(other)];
  for (let n = 0; n < Math.min(a.length, b.length); n++) {
    if (a[n] !== b[n]) return a[n].codePointAt(0) - b[n].codePointAt(0);
  }
  return a.length - b.length;
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.keys(value).sort(byCodePoints);
  return `{${fields.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

// A field of a parsed object, not of all objects: a member may be called "constructor".
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

// --- The page ------------------------------------------------------------------------------

const NOTHING = "0".repeat(64);

// What a party signs (docs/reference/agreement-file.md, "What is signed").
function statement(role, consortium, terms, client, agreement) {
  const fields = {
    role, consortium, terms, client, slot: 0, stage: "terms", turn: 0,
    head: [0, NOTHING], previous: NOTHING, body: { agreement },
  };
  return utf8(`fedaccord statement 1\n${canonical(fields)}`);
}

// What is wrong with the texts of a file, and who signed it: {problems, parties, digest}.
function check({ main, terms, agreement, signatures }) {
  const problems = [];
  const rules = JSON.parse(terms);
  const agreed = JSON.parse(agreement);
  const signed = JSON.parse(signatures);
  const agreementDigest = digest(agreement);
  if (agreed.format !== "fedaccord agreement 1") problems.push("its format is not known to this page");
  if (agreed.page.main !== digest(main)) problems.push("the text of the page was changed");
  if (agreed.terms !== digest(terms)) problems.push("the terms were changed");
  if (signed.agreement !== agreementDigest) problems.push("the agreement was changed");
  if (canonical(signed) !== signatures) problems.push("the list of signatures was changed");
  const parties = [
    ...rules.clients.map((name) => [
      "client", name, own(rules.keys.clients, name), own(signed.clients, name),
    ]),
    ["server", null, rules.keys.server, signed.server],
  ].map(([role, name, key, signature]) => {
    const party = { name: name ?? "the server", state: "not signed" };
    if (signature === undefined || signature === null) return party;
    const content = statement(role, rules.name, agreed.terms, name, agreementDigest);
    const right =
      isHex(signature, 128) && typeof key === "string" && key.startsWith("ed25519:") &&
      isHex(key.slice(8), 64) && isSigned(fromHex(key.slice(8)), fromHex(signature), content);
    party.state = right ? "signed" : "wrong";
    if (!right) problems.push(`the signature of ${party.name} is not its own`);
    return party;
  });
  const known = new Set(rules.clients);
  for (const name of Object.keys(signed.clients)) {
    if (!known.has(name)) problems.push(`there is a signature of ${name}, who is not in the terms`);
  }
  return { problems, parties, digest: agreementDigest };
}

function listed(names) {
  const text = names.slice(0, 20).join(", ");
  return names.length > 20 ? `${text} and ${names.length - 20} more` : text;
}

function headline({ problems, parties }) {
  const missing = parties.filter(({ state }) => state === "not signed").map(({ name }) => name);
  if (problems.length > 0) return ["fails", `NOT verified: ${problems.slice(0, 5).join("; ")}.`];
  if (missing.length === 0) return ["holds", "Verified: signed by every member and by the server."];
  const count = parties.length - missing.length;
  const lead = count === 0 ? "Nobody has signed this yet." : `Signed by ${count} of ${parties.length}.`;
  return ["doubtful", `${lead} Not signed by ${listed(missing)}.`];
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function show(found) {
  const [look, sentence] = headline(found);
  const place = document.getElementById("check");
  place.className = `verdict ${look}`;
  const list = element("ul", "", "parties");
  const words = { signed: "signed", "not signed": "not signed", wrong: "WRONG signature" };
  for (const { name, state } of found.parties) {
    list.append(element("li", `${name}: ${words[state]}`, state.replace(" ", "-")));
  }
  place.replaceChildren(
    element("p", sentence),
    list,
    element("p", `Digest of the agreement: ${found.digest}`, "note"),
    element(
      "p",
      "This page checked itself in your browser, with no network: its text, terms and numbers against " +
        "the signatures. It did not prove the agreement again, and a forged page could say anything here: " +
        "before you rely on it, run fedaccord agreement verify on this file.",
      "note",
    ),
  );
}

function checkThisPage() {
  const text = (id) => document.getElementById(id).textContent;
  try {
    show(
      check({
        main: document.querySelector("main").outerHTML,
        terms: text("terms"),
        agreement: text("agreement"),
        signatures: text("signatures"),
      }),
    );
    document.title = `${JSON.parse(text("terms")).name}: participation agreement`;
  } catch (error) {
    show({ problems: ["it cannot be read as an agreement"], parties: [], digest: "unknown" });
  }
}

if (typeof document !== "undefined") checkThisPage();
