// @ts-check
// Where a reader was in a view: who comes back to it finds the same row and the same place on the screen.

/** The name of the place that a view has in this tab. */
const name = () => `provost-place ${location.pathname}${location.search}`;

/** Whether the browser has come back to this document, or has loaded it again. */
function isBack() {
  const [entry] = performance.getEntriesByType('navigation');
  return entry instanceof PerformanceNavigationTiming && entry.type !== 'navigate';
}

let done = false;

/** Keeps the place when the document is left. */
export function keepPlace() {
  addEventListener('pagehide', () => {
    const row = document.activeElement?.closest('[data-key]');
    const place = { key: row instanceof HTMLElement ? row.dataset.key : '', top: scrollY };
    try {
      sessionStorage.setItem(name(), JSON.stringify(place));
    } catch { /* Without a store, the view begins at its top. */ }
  });
}

/** Goes to the kept place, once, when the rows are there. */
export function goBack() {
  if (done) return;
  done = true;
  if (!isBack() || document.activeElement !== document.body) return;
  try {
    const place = JSON.parse(sessionStorage.getItem(name()) ?? '{}');
    const rows = [...document.querySelectorAll('[data-key]')];
    const row = place.key ? rows.find((it) => it instanceof HTMLElement && it.dataset.key === place.key) : null;
    if (row instanceof HTMLElement) row.focus({ preventScroll: true });
    scrollTo({ top: Number(place.top) || 0 });
  } catch { /* What is no place is none. */ }
}
