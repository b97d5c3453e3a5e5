// @ts-check
// Keeps the page's shell, shows what push services bring, and opens what it is about. It keeps nothing of the repository: what is
// not asked for live is not shown.

/** The daemon writes both in: a name with a digest of all files, and their paths. */
const SHELL = 'SHELL_NAME';
const FILES = ['SHELL_FILES'];
const ICON = 'SHELL_ICON';

/** What is shown where the daemon does not answer. */
const OFFLINE = '/offline';

/** @type {any} A worker's own functions are none that a page has. */
const worker = globalThis;

worker.addEventListener('install', (/** @type {any} */ event) => {
  event.waitUntil(fill().then(() => worker.skipWaiting()));
});

async function fill() {
  const shell = await caches.open(SHELL);
  await shell.addAll([OFFLINE, ...FILES]);
}

worker.addEventListener('activate', (/** @type {any} */ event) => {
  event.waitUntil(tidy().then(() => worker.clients.claim()));
});

/** What another version has kept goes. */
async function tidy() {
  for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
}

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== 'GET' || origin !== location.origin) return;
  // Everything else is the browser's: it asks the daemon, and keeps nothing.
  if (mode === 'navigate') event.respondWith(visit(event.request));
  else if (FILES.includes(pathname)) event.respondWith(file(event.request));
});

/** @param {Request} request */
async function visit(request) {
  try {
    return await fetch(request);
  } catch (err) {
    const kept = await caches.match(OFFLINE);
    if (kept) return kept;
    throw err;
  }
}

/** @param {Request} request */
async function file(request) {
  return (await caches.match(request)) ?? fetch(request);
}

worker.addEventListener('push', (/** @type {any} */ event) => event.waitUntil(tell(event.data)));

const OPEN = { action: 'open', title: 'Open' };
const LATER = { action: 'later', title: 'In 10 minutes' };

/** Each message shows something: a browser takes subscriptions away where one does not. @param {any} data */
async function tell(data) {
  let said = null;
  try {
    said = data.json();
  } catch {
    // It was not ours: who looks is told that there was something.
  }
  const { title, body, tag, lang, dir, silent, data: about, navigate } = said?.notification ?? {};
  const asks = about?.kind === 'approval' || about?.kind === 'permission';
  await worker.registration.showNotification(typeof title === 'string' ? title : 'Provost has news', {
    body: typeof body === 'string' ? body : '',
    tag: typeof tag === 'string' ? tag : 'news',
    lang,
    dir,
    icon: ICON,
    badge: ICON,
    silent: silent === true,
    requireInteraction: asks,
    // Never a verdict: a tap on a notification proves no person.
    actions: about?.kind === 'approval' ? [OPEN, LATER] : [OPEN],
    data: { navigate: typeof navigate === 'string' ? navigate : '/', approval: about?.approval },
  });
  const count = said?.app_badge;
  if (Number.isInteger(count) && 'setAppBadge' in navigator) await navigator.setAppBadge(count).catch(() => {});
}

// Nothing here can sign for the new address, so that a person has to.
worker.addEventListener('pushsubscriptionchange', (/** @type {any} */ event) => {
  event.waitUntil(worker.registration.showNotification('This browser gets no more notices', {
    body: 'Its subscription has changed. Open the page to have it told again.',
    tag: 'subscription',
    icon: ICON,
    data: { navigate: '/passkeys' },
  }));
});

worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  const { navigate, approval } = event.notification.data ?? {};
  event.waitUntil(event.action === LATER.action ? later(approval) : open(navigate ?? '/'));
});

/** Has the daemon tell this browser once more, if the approval waits until then. @param {unknown} approval */
async function later(approval) {
  const { endpoint } = (await worker.registration.pushManager.getSubscription()) ?? {};
  const body = JSON.stringify({ endpoint, approval });
  const asked = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  const answer = await fetch('/snooze-push', asked).catch(() => null);
  if (answer?.ok || answer?.status === 404) return;
  await worker.registration.showNotification('This was not put off', {
    body: 'The daemon does not answer. Open the page to see what waits.', tag: 'later', icon: ICON, data: { navigate: '/' },
  });
}

/** Opens a view of this page, and nothing else. @param {string} to */
async function open(to) {
  const address = new URL(to, location.origin);
  if (address.origin !== location.origin) address.href = location.origin;
  const windows = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const there = windows.find((/** @type {any} */ it) => it.url === address.href);
  // One that shows something else stays as it is: a person may be writing there.
  await (there ? there.focus() : worker.clients.openWindow(address.href));
}
