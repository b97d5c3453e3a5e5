// @ts-check
// Words that a passkey signs. The text that is signed is made here, of what is shown here; what the daemon asks for is only
// compared with it. So a daemon that shows one thing and asks for another gets no signature.

import { base } from './place.js';

/** The first element of each text that is signed. */
const DOMAIN = 'provost-word-v1';

/** How long the browser waits for the person, in milliseconds; the daemon's challenge is good for two minutes. */
const PATIENCE = 110_000;

/**
 * @typedef {{ name: string, rp_id: string, page: string | null }} Signer
 * @typedef {{ id: string, name: string, rp_id: string, transports: string[] }} Allowed
 * @typedef {{ nonce: string, transcript: string, challenge: string, allow: Allowed[] }} Challenge
 */

/** What the daemon has said instead of an answer. */
export class Fault extends Error {
  /**
   * @param {string} message
   * @param {string} word
   */
  constructor(message, word) {
    super(message);
    this.word = word;
  }
}

/**
 * Bytes as base64url without padding.
 * @param {ArrayBuffer} buffer
 */
export function text64(buffer) {
  let text = '';
  for (const byte of new Uint8Array(buffer)) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/**
 * The bytes of such a text.
 * @param {string} text
 */
export function bytes64(text) {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (it) => it.charCodeAt(0));
}

/**
 * SHA-256 of a text.
 * @param {string} text
 */
async function sha256(text) {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
}

/**
 * SHA-256 of a text, hexadecimal.
 * @param {string} text
 */
export async function digest(text) {
  return [...new Uint8Array(await sha256(text))].map((it) => it.toString(16).padStart(2, '0')).join('');
}

/**
 * A value as canonical JSON: members sorted, no blanks.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

/**
 * Sends something to the daemon, which answers it.
 * @param {string} path
 * @param {any} body
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  let answer;
  try {
    answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  } catch {
    throw new Fault('The daemon does not answer. Look again when the page is live: what you have sent may have arrived.', 'gone');
  }
  const said = await answer.json();
  if (answer.ok) return said;
  throw new Fault([said.message ?? said.error, said.hint].filter(Boolean).join('; try: '), said.error ?? '');
}

/** Whether this browser has passkeys at this page. */
export function canSign() {
  return 'PublicKeyCredential' in globalThis && navigator.credentials !== undefined && crypto.subtle !== undefined;
}

/**
 * Those that may sign at this page: a passkey belongs to the host of a page.
 * @template {{ rp_id: string }} T
 * @param {T[]} signers
 * @returns {T[]}
 */
export function ofThisHost(signers) {
  return signers.filter((it) => it.rp_id === location.hostname);
}

/**
 * What the browser has said, in words that help.
 * @param {unknown} err
 */
export function inWords(err) {
  if (err instanceof Fault) return err.message;
  if (!(err instanceof DOMException)) return err instanceof Error ? err.message : String(err);
  switch (err.name) {
    case 'NotAllowedError':
      return 'The browser has brought no signature: it was cancelled, took too long, no passkey was there, or its user was not '
        + 'verified. A manager of passwords that steps in takes no page over plain HTTP. Try again, or answer at a terminal.';
    case 'InvalidStateError': return 'This authenticator has a passkey of this daemon already.';
    case 'SecurityError': return 'The browser has no passkeys at this address; open the page by its name, as provost.localhost.';
    default: return `The browser has brought no signature: ${err.message}`;
  }
}

/**
 * That the text which the daemon asks for is the one that is made here.
 * @param {Challenge} challenge
 * @param {string} daemon
 * @param {any} word
 */
async function check(challenge, daemon, word) {
  const text = canonical([DOMAIN, daemon, challenge.nonce, word]);
  if (text !== challenge.transcript || text64(await sha256(text)) !== challenge.challenge) {
    throw new Fault('The daemon asks for a signature over something else than what is shown here. Nothing was signed.', 'other');
  }
}

/**
 * Has one of these passkeys sign a challenge over this word.
 * @param {Challenge} challenge
 * @param {string} daemon
 * @param {any} word
 * @param {Allowed[]} allowed
 */
export async function assertion(challenge, daemon, word, allowed) {
  await check(challenge, daemon, word);
  const allowCredentials = ofThisHost(allowed).map((it) => (
    { type: /** @type {const} */ ('public-key'), id: bytes64(it.id), transports: /** @type {any} */ (it.transports) }
  ));
  const made = /** @type {PublicKeyCredential} */ (await navigator.credentials.get({
    publicKey: {
      challenge: bytes64(challenge.challenge),
      rpId: location.hostname,
      allowCredentials,
      userVerification: 'required',
      timeout: PATIENCE,
    },
  }));
  const response = /** @type {AuthenticatorAssertionResponse} */ (made.response);
  return {
    credential: text64(made.rawId),
    client_data: text64(response.clientDataJSON),
    authenticator_data: text64(response.authenticatorData),
    signature: text64(response.signature),
  };
}

/**
 * Has a word signed, and hands it in.
 * @param {any} asked what is asked of the daemon
 * @param {any} word what is signed
 * @param {string} daemon
 * @param {string} at the path below which the daemon's repository is
 */
export async function say(asked, word, daemon, at = base) {
  const challenge = await post(`${at}/word-challenge`, asked);
  const made = await assertion(challenge, daemon, word, challenge.allow);
  return post(`${at}/signed-word`, { nonce: challenge.nonce, assertion: made });
}

/** @type {Record<number, any>} */
const KINDS = {
  '-7': { name: 'ECDSA', namedCurve: 'P-256' },
  '-8': { name: 'Ed25519' },
  '-257': { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
};

/**
 * The public key of a new passkey as a JSON Web Key, as the daemon writes it.
 * @param {AuthenticatorAttestationResponse} response
 */
async function publicKey(response) {
  const kind = KINDS[response.getPublicKeyAlgorithm()];
  const bytes = response.getPublicKey();
  if (!kind || !bytes) throw new Fault('The new passkey is of a kind that is not accepted.', 'kind');
  const whole = /** @type {any} */ (
    await crypto.subtle.exportKey('jwk', await crypto.subtle.importKey('spki', bytes, kind, true, ['verify']))
  );
  return Object.fromEntries(['kty', 'crv', 'x', 'y', 'n', 'e'].filter((it) => it in whole).map((it) => [it, whole[it]]));
}

/**
 * Makes a passkey, and has it sign once; a known one signs for it where there is one. `tell` is told what comes next, and `again`
 * asks whether a signature that did not come is to be asked for again.
 * With `elsewhere`, the known ones are of other pages, and the new one waits for the signature there; then its digest comes back,
 * with the pages.
 * @param {{ code: string, name: string, daemon: string, vouch: boolean, elsewhere: boolean }} asked
 * @param {(text: string) => void} tell
 * @param {(why: string) => Promise<void>} again
 */
export async function enrol(asked, tell, again) {
  const { code, name, daemon, vouch, elsewhere } = asked;
  const options = await post(`${base}/begin-passkey`, { code, name, origin: location.origin });
  tell('Your browser asks where to make the passkey.');
  const made = /** @type {PublicKeyCredential} */ (await navigator.credentials.create({
    publicKey: {
      rp: { id: options.rp_id, name: 'Provost' },
      user: { id: bytes64(options.user_id), name: options.user_name, displayName: options.user_name },
      challenge: bytes64(options.challenge),
      pubKeyCredParams: options.algorithms.map((/** @type {number} */ alg) => ({ type: 'public-key', alg })),
      excludeCredentials: ofThisHost(/** @type {Allowed[]} */ (options.exclude)).map((it) => (
        { type: 'public-key', id: bytes64(it.id), transports: /** @type {any} */ (it.transports) }
      )),
      authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
      attestation: 'none',
      timeout: PATIENCE,
    },
  }));
  const response = /** @type {AuthenticatorAttestationResponse} */ (made.response);
  const challenge = await post(`${base}/finish-passkey`, {
    nonce: options.nonce,
    client_data: text64(response.clientDataJSON),
    attestation_object: text64(response.attestationObject),
    transports: response.getTransports(),
  });
  const id = text64(made.rawId);
  const word = { enrol: await digest(canonical({ id, key: await publicKey(response), name, rp_id: options.rp_id })) };
  const is = (/** @type {Allowed} */ it) => it.id === id;
  const sign = async (/** @type {string} */ text, /** @type {Allowed[]} */ allowed) => {
    for (;;) {
      tell(text);
      try {
        return await assertion(challenge, daemon, word, allowed);
      } catch (err) {
        if (!(err instanceof DOMException)) throw err;
        await again(inWords(err));
      }
    }
  };
  const own = await sign('The new passkey signs once, so that it is known to work.', challenge.allow.filter(is));
  if (vouch && elsewhere) {
    const held = await post(`${base}/hold-passkey`, { nonce: challenge.nonce, own });
    // What is shown here is what was made here, whatever the daemon says.
    return { ...held, name, enrol: word.enrol, held: true };
  }
  const known = challenge.allow.filter((/** @type {Allowed} */ it) => !is(it));
  const by = vouch ? await sign('Now a passkey that you have already signs for the new one.', known) : null;
  return post(`${base}/confirm-passkey`, { nonce: challenge.nonce, own, vouch: by });
}

/**
 * Has a known passkey of this page sign for a new one of another page.
 * @param {any} waiting
 * @param {string} enrol the digest, as this page has computed it
 * @param {string} daemon
 */
export async function vouchFor(waiting, enrol, daemon) {
  const made = await assertion(waiting.challenge, daemon, { enrol }, waiting.challenge.allow);
  return post(`${base}/vouch-passkey`, { nonce: waiting.challenge.nonce, assertion: made });
}

/** The digest that is signed of a new passkey. @param {any} waiting */
export async function enrolDigest({ id, key, name, rp_id }) {
  return digest(canonical({ id, key, name, rp_id }));
}
