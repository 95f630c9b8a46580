/** Tools are in .cache/tools/bench/support when they run, and in bench/support when a test reads them. */
const dist = import.meta.url.includes('/.cache/tools/') ? '../../../../dist/' : '../../dist/';

/** A module of the built library, typed by its source: tools must run the code of users. `path` is relative to src/. */
export async function importBuilt<T>(path: string): Promise<T> {
  return (await import(new URL(`${dist}${path}.js`, import.meta.url).href)) as T;
}
