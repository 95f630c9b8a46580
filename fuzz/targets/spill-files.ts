import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSealedRecords } from '../../src/platform/node/spill/sealed-records.ts';
import { createTemporaryRoot } from '../../test/support/temporary-root.ts';
import { encode, type FuzzTarget } from '../target.ts';

const masterKey = new Uint8Array(32).fill(9);
const TEXT = 'what a tenant has stored';

/** One folder for the process: a record with known contents, whose file is replaced by the input. */
function createFolder(): { readonly folder: string; readonly file: string; readonly sealed: Uint8Array } {
  const folder = createTemporaryRoot('ruvllm-fuzz-').newFolder();
  openSealedRecords({ folder, masterKey }).put('alice', 'session', 'one', encode(TEXT));
  const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((one) => one.endsWith('.record'))!;
  return { folder, file: join(folder, name), sealed: Uint8Array.from(readFileSync(join(folder, name))) };
}
let created: ReturnType<typeof createFolder> | null = null;
const shared = (): ReturnType<typeof createFolder> => (created ??= createFolder());

/** Files that only a holder of the key can have written: a changed one is refused, and never read as something else. */
export const spillTarget: FuzzTarget = {
  name: 'spill',
  words: [],
  seeds: () => [shared().sealed],
  run(bytes) {
    const { folder, file } = shared();
    writeFileSync(file, bytes);
    const read = openSealedRecords({ folder, masterKey }).get('alice', 'session', 'one');
    if (read !== null && new TextDecoder().decode(read) !== TEXT)
      throw new Error('a changed file was read as another record');
  },
};
