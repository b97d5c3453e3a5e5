// @ts-check
// How often a view is asked for: at once where nothing was asked for lately, and at a steady pace while things change without end.

/** How many times it is asked for at once. */
const AT_ONCE = 4;

/** After how long there is one time more, in milliseconds. */
const ONE_MORE = 100;

export class Pace {
  constructor() {
    this.left = AT_ONCE;
    this.at = 0;
  }

  /** How long to wait until it may be asked for, in milliseconds. @param {number} now */
  wait(now) {
    this.refill(now);
    return this.left >= 1 ? 0 : Math.ceil((1 - this.left) * ONE_MORE);
  }

  /** It is asked for, also where it had to be at once. @param {number} now */
  take(now) {
    this.refill(now);
    this.left = Math.max(0, this.left - 1);
  }

  /** @param {number} now */
  refill(now) {
    // A clock that was set back gives nothing, and takes nothing.
    this.left = Math.min(AT_ONCE, this.left + Math.max(0, now - this.at) / ONE_MORE);
    this.at = now;
  }
}
