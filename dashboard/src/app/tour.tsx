import { computed, signal } from '@preact/signals';
import { Button } from '../components/button.tsx';
import { formatCount } from '../format/numbers.ts';
import { messages } from '../messages/index.ts';
import { isServerEmpty, permissions } from './session.ts';
import { VIEWS } from './views.ts';

const text = messages.app.tour;
const STORAGE_KEY = 'ruvllm.tour';
const VIEW_IDS = ['chat', 'memory', 'models'] as const;

/** Index of the shown step; null: the tour was skipped or finished, also on an earlier visit. */
const stepIndex = signal<number | null>(localStorage.getItem(STORAGE_KEY) === null ? 0 : null);

const steps = computed(() => [
  ...VIEW_IDS.filter((id) => VIEWS.find((view) => view.id === id)?.isOpenTo(permissions.value) === true),
  'commands' as const,
]);

/** The view or button that the tour explains now; null: none. The navigation marks it. */
export const tourTarget = computed(() =>
  stepIndex.value === null || isServerEmpty() ? null : (steps.value[stepIndex.value] ?? null),
);

export function startTour(): void {
  stepIndex.value = 0;
}

function endTour(): void {
  stepIndex.value = null;
  localStorage.setItem(STORAGE_KEY, 'done');
}

/** Explains the page in a few steps beside the navigation; it covers nothing. */
export function Tour() {
  const target = tourTarget.value;
  if (target === null) return null;
  const step = stepIndex.value! + 1;
  const numSteps = steps.value.length;
  const title = VIEWS.find(({ id }) => id === target)?.title ?? messages.app.commands;
  return (
    <aside class="tour" aria-label={text.label}>
      <div>
        <strong>{title}</strong>{' '}
        <span class="small soft">{text.position(formatCount(step), formatCount(numSteps))}</span>
      </div>
      <p class="small">{text.steps[target]}</p>
      <div class="row">
        {step < numSteps && (
          <Button isSmall kind="plain" onClick={endTour}>
            {text.skip}
          </Button>
        )}
        <Button isSmall kind="primary" onClick={() => (step < numSteps ? (stepIndex.value = step) : endTour())}>
          {step < numSteps ? text.next : text.done}
        </Button>
      </div>
    </aside>
  );
}
