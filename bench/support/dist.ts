/** Tools are in .cache/tools/bench/support when they run, and in bench/support when a test reads them. */
const modules = import.meta.url.includes('/.cache/tools/') ? '../../src/' : '../../.cache/tools/src/';

/** A transpiled module of the library, typed by its source. `path` is relative to src/. */
export async function importBuilt<T>(path: string): Promise<T> {
  return (await import(new URL(`${modules}${path}.js`, import.meta.url).href)) as T;
}
