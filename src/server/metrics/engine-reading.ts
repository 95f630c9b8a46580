import type { EngineStats } from '../../runtime/lower-layers.ts';

/** Statistics of an engine; null: no response. */
export interface EngineReading {
  readonly id: string;
  readonly stats: EngineStats | null;
}
