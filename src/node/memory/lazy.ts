import type { Memory } from '../../memory/memory.ts';
import type { OpenMemoryOptions } from './open-memory.ts';

/** Opens the memory in a thread of its own. Loads its code on the first call. */
export async function openMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  const { openNodeMemory } = await import('./open-memory.ts');
  return openNodeMemory(options);
}
