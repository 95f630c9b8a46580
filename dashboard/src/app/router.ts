import { signal } from '@preact/signals';

/** The segments of the URL fragment: `#/audit/a%2Fb` is `['audit', 'a/b']`. */
export const route = signal<readonly string[]>(readRoute(location.hash));

addEventListener('hashchange', () => (route.value = readRoute(location.hash)));

export function readRoute(hash: string): string[] {
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .map(decodePart);
}

/** Returns the URL of a view, for `href`. */
export function hrefOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

/** Navigates to a view, adding a history entry. */
export function goTo(...parts: readonly string[]): void {
  location.hash = hrefOf(...parts);
}

/** Malformed percent-encoding is kept verbatim, because URLs can be typed by hand. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
