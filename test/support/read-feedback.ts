import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** A server's stored feedback on a request, read from its folder like another process; null: none. */
export async function readFeedback(
  { data, state }: { data: string; state: string },
  tenant: string,
  requestId: string,
): Promise<unknown> {
  const dist = fileURLToPath(new URL('../../dist/platform/node', import.meta.url));
  const load = async <T>(name: string): Promise<T> => (await import(pathToFileURL(join(dist, name)).href)) as T;
  const { openSealedRecords } =
    await load<typeof import('../../src/platform/node/spill/sealed-records.ts')>('spill/sealed-records.js');
  const { readOrCreateMasterKey } =
    await load<typeof import('../../src/platform/node/sealing/master-key.ts')>('sealing/master-key.js');
  const masterKey = readOrCreateMasterKey(join(state, 'master.key'));
  const bytes = openSealedRecords({ folder: join(data, 'feedback'), masterKey }).get(tenant, 'feedback', requestId);
  return bytes === null ? null : JSON.parse(new TextDecoder().decode(bytes));
}
