// Seconds of work: the time between things that somebody does, without the pauses that are longer than the project's.

const SIGNS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart", "scroll"];

/** Counts while somebody works. */
export class Clock {
  /** @param {number} idle seconds after which time no longer counts */
  constructor(idle) {
    this.idle = idle;
    this.counted = 0;
    this.last = performance.now();
    this.sign = this.sign.bind(this);
    for (const name of SIGNS) addEventListener(name, this.sign, { passive: true, capture: true });
  }

  sign() {
    const now = performance.now();
    const passed = (now - this.last) / 1000;
    if (passed <= this.idle && document.visibilityState === "visible") this.counted += passed;
    this.last = now;
  }

  /** The seconds since the last time that it was asked. */
  take() {
    this.sign();
    const taken = Math.min(Math.round(this.counted * 10) / 10, 86_400);
    this.counted = 0;
    return taken;
  }

  stop() {
    for (const name of SIGNS) removeEventListener(name, this.sign, { capture: true });
  }
}
