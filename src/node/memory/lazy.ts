import type { Memory } from '../../memory/memory.ts';
import type { OpenMemoryOptions } from './open-memory.ts';

/** Opens the memory in a thread of its own; loaded with the first call, for most programs have none. */
export async function openMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  const { openNodeMemory } = await import('./open-memory.ts');
  return openNodeMemory(options);
}
