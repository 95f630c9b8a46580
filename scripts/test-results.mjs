// What a run of tests amounts to: its counts, the tests that pass only alone, and the last line. `node scripts/test-results.mjs FILE …`
// adds up the last lines of several outputs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Of a run that died before its report: a failure, never a silent zero. */
export const NO_REPORT = { files: [], unhandled: ['the tests ended without a report'] };
/** More failing files than this are no accident of a busy machine. */
const MAX_REPEATED_FILES = 3;
const MAX_RECORDS = 200;

export const readReport = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : NO_REPORT);

const failuresOf = (files) =>
  files.flatMap(({ file, failures }) => failures.map((one) => ({ ...one, test: `${file}: ${one.name}`, file })));
const sumOf = (files, key) => files.reduce((sum, one) => sum + one[key], 0);

/** The files that run again, alone: browsers and processes compete for the cores, and alone a failure is one of the code. */
export function filesToRepeat({ files }) {
  const failed = files.filter(({ failures }) => failures.length > 0).map(({ file }) => file);
  return failed.length <= MAX_REPEATED_FILES ? failed : [];
}

/** The counts of a run, in which the files of the second run replace their first. A test that passed only alone is unstable. */
export function settle(first, again = { files: [], unhandled: [] }) {
  const repeated = new Set(again.files.map(({ file }) => file));
  const files = [...first.files.filter(({ file }) => !repeated.has(file)), ...again.files];
  const failures = failuresOf(files);
  const left = new Set(failures.map(({ test }) => test));
  // Only a file that ran again, with tests, has shown that it can pass.
  const canPass = new Set(again.files.filter(({ passed }) => passed > 0).map(({ file }) => file));
  const failedOnce = failuresOf(first.files).filter(({ test }) => !left.has(test));
  const unstable = failedOnce.filter(({ file }) => canPass.has(file));
  return {
    passed: sumOf(files, 'passed') - unstable.filter(({ isTest }) => isTest).length,
    skipped: sumOf(files, 'skipped'),
    // A test that failed and then was not run has not passed.
    failures: [...failures, ...failedOnce.filter((one) => !unstable.includes(one))],
    unstable,
    unhandled: [...first.unhandled, ...again.unhandled],
  };
}

/** The last line of every command that tests. */
export function lastLine({ passed, failed, unstable = 0, skipped = 0 }) {
  const more = [unstable > 0 ? `, ${unstable} unstable` : '', skipped > 0 ? `, ${skipped} skipped` : ''];
  return `${passed} passed, ${failed} failed${more.join('')}`;
}

/** The sum of last lines; an output without one is a failure. */
export function addLines(texts) {
  const total = { passed: 0, failed: 0, unstable: 0, skipped: 0 };
  for (const text of texts) {
    const line = text.trimEnd().split('\n').at(-1) ?? '';
    const counts = /^\d+ passed, \d+ failed/.test(line) ? line : '0 passed, 1 failed';
    for (const [, count, name] of counts.matchAll(/(\d+) (\w+)/g)) total[name] += Number(count);
  }
  return lastLine(total);
}

/** Adds the unstable tests of a run to the record: a test that is in it twice is no accident. */
export function recordUnstable(path, unstable, date = new Date().toISOString()) {
  if (unstable.length === 0) return;
  const records = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : [];
  records.push(...unstable.map(({ test, error }) => ({ date, test, error })));
  writeFileSync(path, `${JSON.stringify(records.slice(-MAX_RECORDS), null, 2)}\n`);
}

/** Merges the durations of a run into those of earlier runs, which order the next one. */
export function recordDurations(path, { files }) {
  const known = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  for (const { file, ms, passed } of files) if (passed > 0) known[file] = ms;
  writeFileSync(path, `${JSON.stringify(known, null, 2)}\n`);
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  console.log(addLines(process.argv.slice(2).map((path) => readFileSync(path, 'utf8'))));
}
