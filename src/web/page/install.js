// @ts-check
// The page as an app: its service worker, and the number on its icon.

/** Where the worker is. It is for all views, so that it stands above them. */
const WORKER = '/service-worker.js';

/** The one address that may become a script: pages of this door make none of any other text. */
function script() {
  const types = /** @type {any} */ (globalThis).trustedTypes;
  if (!types) return WORKER;
  const policy = types.createPolicy('provost-worker', {
    createScriptURL: (/** @type {string} */ it) => {
      if (it !== WORKER) throw new TypeError('no script but the worker');
      return it;
    },
  });
  return policy.createScriptURL(WORKER);
}

/** @type {Promise<ServiceWorkerRegistration> | null} */
let registered = null;

/** The worker of this page, once it is at work. @returns {Promise<ServiceWorkerRegistration>} */
export function worker() {
  if (!('serviceWorker' in navigator)) {
    return Promise.reject(new Error('This browser runs no service workers at this page, as in private windows.'));
  }
  registered ??= navigator.serviceWorker.register(script(), { scope: '/', updateViaCache: 'none' })
    .then(() => navigator.serviceWorker.ready);
  return registered;
}

/** Without it, the page is the same as long as the daemon answers. */
export function install() {
  worker().catch(() => {});
}

/** Shows on the app's icon how much waits. @param {unknown} count */
export function badge(count) {
  if (typeof count !== 'number' || !('setAppBadge' in navigator)) return;
  navigator.setAppBadge(count).catch(() => {});
}
