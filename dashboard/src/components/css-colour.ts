let probe: HTMLElement | null = null;

/** Resolves a theme colour to a value that canvas accepts: `resolveColour('--series-1')`. */
export function resolveColour(property: string): string {
  if (probe === null) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  // The custom property itself reads light-dark(…); only a computed colour is resolved to one of the two.
  probe.style.color = `var(${property})`;
  return getComputedStyle(probe).color;
}
