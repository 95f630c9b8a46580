import { join } from 'node:path';
import type { Trajectory } from '../../src/memory/schemas/trajectory.ts';
import { importDist } from './import-dist.ts';

/** A request with its feedback, read from the memory of a server that has ended; null: not stored. */
export async function readFeedback(
  { data, state }: { data: string; state: string },
  tenant: string,
  requestId: string,
): Promise<Trajectory | null> {
  const { openMemory } = await importDist<typeof import('../../src/index.ts')>('index.js');
  const { createTrajectories } = await importDist<typeof import('../../src/learning/trajectories/trajectories.ts')>(
    'learning/trajectories/trajectories.js',
  );
  const { readOrCreateMasterKey } = await importDist<typeof import('../../src/platform/node/sealing/master-key.ts')>(
    'platform/node/sealing/master-key.js',
  );
  const masterKey = { key: readOrCreateMasterKey(join(state, 'master.key')) };
  const memory = await openMemory({ place: join(data, 'memory'), masterKey, modelPath: null });
  try {
    return await createTrajectories(memory.store, memory.services).get(tenant, requestId);
  } finally {
    await memory.close();
  }
}
