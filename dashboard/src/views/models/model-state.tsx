import type { ModelEntry } from '../../api/types.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { messages } from '../../messages/index.ts';

const TONES: Readonly<Record<NonNullable<ModelEntry['state']>, Tone>> = {
  loaded: 'good',
  loading: 'accent',
  unloaded: 'none',
  failed: 'bad',
};

/** The load state of a model. */
export function ModelState({ state }: { state: NonNullable<ModelEntry['state']> }) {
  return <Badge tone={TONES[state]}>{messages.models.states[state]}</Badge>;
}
