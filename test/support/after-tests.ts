// Work after each test for modules that several test files share. Hooks that such a module registers itself run for the first
// file only, because files share processes, and not at all when that file has no test to run.
const cleanups = new Set<() => unknown>();

/** Calls `cleanup` after every test of every file from now on. */
export const afterEveryTest = (cleanup: () => unknown): void => void cleanups.add(cleanup);

export async function runCleanups(): Promise<void> {
  for (const cleanup of cleanups) await cleanup();
}
