// @ts-check
// Has this browser told by its push service: a passkey signs for it, since a process could name a browser of its own.

import { make, say as aloud } from './dom.js';
import { AGAIN, notHere, signing } from './answer.js';
import { worker } from './install.js';
import { bytes64, canonical, digest, post, say, text64 } from './sign.js';

/** Why this browser cannot be told at this page, if it cannot. */
function missing() {
  if ('PushManager' in globalThis && 'Notification' in globalThis) return null;
  return 'This browser takes no messages at this page. On an iPhone or iPad, add the page to the Home Screen first (Share, '
    + 'Add to Home Screen), open it there, and press the button again.';
}

/** Asks the person, who answers in the browser's own dialog. */
async function permission() {
  const known = Notification.permission;
  if (known === 'granted' || (known === 'default' && await Notification.requestPermission() === 'granted')) return;
  throw new Error('The browser does not let this page show notifications. Its settings for this page can be changed.');
}

/** The subscription of this browser with this key of the daemon. @param {string} key */
async function subscription(key) {
  const { pushManager } = await worker();
  const known = await pushManager.getSubscription();
  const with_ = known?.options.applicationServerKey;
  if (known && with_ && text64(with_) === key) return known;
  // Its push service would take no message that another key has signed.
  await known?.unsubscribe();
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes64(key) });
}

/**
 * @param {string} name
 * @param {string} daemon
 */
async function subscribe(name, daemon) {
  if (!name) throw new Error('Type a name for this browser, such as phone.');
  const why = missing();
  if (why) throw new Error(why);
  // First of all: the browser asks only as long as the press of the button counts.
  await permission();
  const { key } = await post('/begin-push', null);
  const made = (await subscription(key)).toJSON();
  const offer = {
    auth: made.keys?.auth ?? '', endpoint: made.endpoint ?? '', key, origin: location.origin, p256dh: made.keys?.p256dh ?? '',
  };
  const own = await digest(canonical(offer));
  const { offer: theirs } = await post('/offer-push', offer);
  if (own !== theirs) throw new Error('The daemon has understood another offer than this browser has made. Nothing was signed.');
  const args = { name, offer: own };
  const word = { verb: 'subscribe-push', arguments: await digest(canonical(args)) };
  await say({ verb: 'subscribe-push', arguments: args }, word, daemon);
  aloud(`${name} is told from now on.`);
  document.dispatchEvent(new Event(AGAIN));
  return `${name} is told from now on.`;
}

/** Whether the daemon knows this browser. @param {[string, string][]} told @param {HTMLElement} line */
async function known(told, line) {
  if (missing()) return;
  const there = await (await worker()).pushManager.getSubscription();
  if (!there) return;
  const own = await digest(there.endpoint);
  const found = told.find(([id]) => own.startsWith(id));
  line.textContent = found ? `This browser is told, as ${found[1]}.`
    : 'This browser is subscribed, and the daemon does not know it any more: press the button again.';
}

/** Where this browser is subscribed. @param {any} block */
export function pushNode(block) {
  const made = make('section', { class: 'block answer' }, make('h2', {}, 'Have this browser told'));
  if (block.why_not) {
    made.append(make('p', { class: 'notice waiting' }, block.why_not));
    return made;
  }
  const elsewhere = notHere(block.signers, '/passkeys');
  if (elsewhere) {
    made.append(elsewhere);
    return made;
  }
  const attributes = { id: 'browser-name', autocomplete: 'off', spellcheck: 'false', maxlength: '60' };
  const name = /** @type {HTMLInputElement} */ (make('input', attributes));
  const line = make('p', { class: 'quiet', role: 'status' });
  const work = () => subscribe(name.value.trim().toWellFormed(), block.daemon);
  const button = signing({ text: 'Tell this browser', does: 'subscribe', work, line });
  made.append(
    make('p', {}, 'Its push service brings a message here when something needs you, also while the page is closed: the '
      + 'number, the risk, who asks, and six characters of the digest. It cannot read it. A message answers nothing.'),
    make('p', { class: 'field' }, make('label', { for: 'browser-name' }, 'A name for this browser, such as phone'), name),
    make('p', { class: 'answers' }, button), line,
  );
  // Without a worker the button says why.
  known(block.told, line).catch(() => {});
  return made;
}
