import type { Memory } from '../../memory/memory.ts';
import type { OpenMemoryOptions } from './open-memory.ts';

/** Opens the memory in its own thread. Loaded with the first call, because most programs have none. */
export async function openMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  const { openNodeMemory } = await import('./open-memory.ts');
  return openNodeMemory(options);
}
