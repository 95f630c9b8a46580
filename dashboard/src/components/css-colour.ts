let probe: HTMLElement | null = null;

/** A colour of the theme as a canvas takes it: `resolveColour('--series-1')`. */
export function resolveColour(property: string): string {
  if (probe === null) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  // The property itself would read light-dark(…); only a colour in use is one of the two.
  probe.style.color = `var(${property})`;
  return getComputedStyle(probe).color;
}
