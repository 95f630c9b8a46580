// One install or build at a time in a checkout: two of them would write the same folders.
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const POLL_MS = 200;

export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The process that holds the lock; null: nobody does, or it is gone. */
function holderOf(path) {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return null;
  }
  const pid = Number(text);
  // Empty for the instant between creating and writing.
  return text === '' || (pid !== process.pid && isAlive(pid)) ? pid : null;
}

function tryTake(path) {
  try {
    const file = openSync(path, 'wx');
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** Runs `work` alone; waits for another process first, and takes over from one that was killed. */
export async function withLock(path, work) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    accessSync(dirname(path), constants.W_OK);
  } catch {
    return await work(); // Where nothing can be written, nothing is built; the work says so if it has to.
  }
  let hasSaidSo = false;
  let numEmpty = 0;
  while (!tryTake(path)) {
    const holder = holderOf(path);
    numEmpty = holder === 0 ? numEmpty + 1 : 0;
    if (holder === null || numEmpty > 10) {
      rmSync(path, { force: true }); // Of a process that was killed.
      continue;
    }
    if (!hasSaidSo && holder !== 0) console.error(`Waiting for process ${holder}, which is building in this folder …`);
    hasSaidSo ||= holder !== 0;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const release = () => rmSync(path, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}
