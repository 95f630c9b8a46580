import { learningOf, type LearningSeries, type VersionPoint } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

/** How losses, routing and forgetting went, version by version, and how much was judged. */
export function Curves() {
  const series = useResource((signal) => learningOf(client).series(signal));
  const known = series.data.value;
  if (series.error.value !== null) return <ErrorNotice error={series.error.value} onRetry={series.reload} />;
  if (known === null) return <Loading what="Reading" />;
  const adapters = known.adapters.filter(({ points }) => points.length > 0);
  const isEmpty = adapters.length === 0 && known.router.points.length === 0 && known.feedback.length === 0;
  if (isEmpty) {
    return (
      <EmptyState icon="learning" title="Nothing to draw yet">
        <p>Curves begin with the first feedback and the first loop.</p>
      </EmptyState>
    );
  }
  return (
    <div class="learning-charts">
      {adapters.map(({ model, points }) => (
        <LossChart key={model} model={model} points={points} />
      ))}
      {adapters.map(({ model, points }) => (
        <ForgettingChart key={model} model={model} points={points} />
      ))}
      {known.router.points.length > 0 && <RouterChart points={known.router.points} />}
      {known.feedback.length > 0 && <FeedbackChart feedback={known.feedback} />}
    </div>
  );
}

const versionsOf = (points: readonly VersionPoint[]): readonly number[] => points.map(({ version }) => version);

function LossChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = `Held-out loss of ${visibleText(model)}`;
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={`${title}, before and after each version`}
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[
          { label: 'before', values: points.map(({ lossBefore }) => lossBefore), isDashed: true },
          { label: 'after', values: points.map(({ lossAfter }) => lossAfter) },
        ]}
      />
    </section>
  );
}

function ForgettingChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = `Forgetting of ${visibleText(model)}`;
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={`${title}: how much the loss elsewhere rose with each version`}
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[{ label: 'loss elsewhere', values: points.map(({ forgetting }) => forgetting) }]}
      />
    </section>
  );
}

function RouterChart({ points }: { points: readonly VersionPoint[] }) {
  return (
    <section class="card" aria-label="Gain of the router">
      <h2>Gain of the router</h2>
      <LineChart
        label="How much reward each version of the router won on requests it did not see, with 95 % bounds"
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[
          { label: 'gain', values: points.map(({ gain }) => gain) },
          { label: 'at least', values: points.map(({ gainLow }) => gainLow), isDashed: true, colour: '--line-strong' },
          { label: 'at most', values: points.map(({ gainHigh }) => gainHigh), isDashed: true, colour: '--line-strong' },
        ]}
      />
    </section>
  );
}

function FeedbackChart({ feedback }: { feedback: LearningSeries['feedback'] }) {
  return (
    <section class="card" aria-label="Feedback">
      <h2>Feedback</h2>
      <LineChart
        label="How many answers were judged good, poor, or corrected"
        x={feedback.map(({ startMs }) => startMs / 1000)}
        format={formatCount}
        isCount
        lines={[
          { label: 'good', values: feedback.map(({ numUp }) => numUp) },
          { label: 'poor', values: feedback.map(({ numDown }) => numDown) },
          { label: 'corrected', values: feedback.map(({ numCorrected }) => numCorrected) },
        ]}
      />
    </section>
  );
}
