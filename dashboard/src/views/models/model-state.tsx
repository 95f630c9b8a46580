import type { ModelEntry } from '../../api/types.ts';
import { Badge, type Tone } from '../../components/badge.tsx';

const TONES: Readonly<Record<NonNullable<ModelEntry['state']>, Tone>> = {
  loaded: 'good',
  loading: 'accent',
  unloaded: 'none',
  failed: 'bad',
};

/** Whether a model is in memory. */
export function ModelState({ state }: { state: NonNullable<ModelEntry['state']> }) {
  return <Badge tone={TONES[state]}>{state}</Badge>;
}
