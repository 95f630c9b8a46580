import { signal } from '@preact/signals';

/** The address behind `#`, in parts: `#/audit/a%2Fb` is `['audit', 'a/b']`. */
export const route = signal<readonly string[]>(readRoute(location.hash));

addEventListener('hashchange', () => (route.value = readRoute(location.hash)));

export function readRoute(hash: string): string[] {
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .map(decodePart);
}

/** The address of a view, for `href`. */
export function hrefOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

/** Goes there as a link would. */
export function goTo(...parts: readonly string[]): void {
  location.hash = hrefOf(...parts);
}

/** Anybody can write an address: one that is not well formed is taken as it is. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
