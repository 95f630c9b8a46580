import { api } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { JsonViewer } from '../../components/json-viewer.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount, formatCountOf } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';

/** The facts of `GET /props` about a loaded model that people ask for. */
interface ModelFacts {
  readonly architecture: string;
  readonly numParameters: number;
  readonly quantization: string;
  readonly contextLength: number;
  readonly maxContext: number;
  readonly vocabSize: number;
  readonly chatTemplate: string;
  readonly fileBytes: number;
  readonly memory: { readonly weightBytes: number; readonly kvBytes: number; readonly activationBytes: number };
  readonly kernels: string;
  readonly numThreads: number;
  readonly loadMs: number;
  readonly sampling: Readonly<Record<string, unknown>>;
}

/** The facts about a loaded model, and all it reports. */
export function ModelDetails({ id, onClose }: { id: string; onClose: () => void }) {
  const props = useResource((signal) => api.props(signal));
  const model = props.data.value?.models.find((entry) => entry.id === id);
  return (
    <Dialog title={visibleText(id)} isWide onClose={onClose}>
      {props.error.value !== null && <ErrorNotice error={props.error.value} />}
      {props.data.value === null && props.error.value === null && <Loading label="Loading details" />}
      {model !== undefined &&
        (model.info === null ? (
          <p class="soft">This model is not loaded.</p>
        ) : (
          <div class="stack">
            <dl class="pairs">
              {factsOf(model.info as unknown as ModelFacts).map(([name, value]) => [
                <dt key={name}>{name}</dt>,
                <dd>{visibleText(value)}</dd>,
              ])}
            </dl>
            <details>
              <summary>All details</summary>
              <JsonViewer value={model.info} openDepth={2} />
            </details>
          </div>
        ))}
    </Dialog>
  );
}

function factsOf(info: ModelFacts): readonly (readonly [name: string, value: string])[] {
  const { weightBytes, kvBytes, activationBytes } = info.memory;
  const sampling = Object.entries(info.sampling).filter(([, value]) => typeof value === 'number');
  return [
    ['Architecture', info.architecture],
    ['Parameters', formatCount(info.numParameters)],
    ['Quantization', info.quantization],
    ['Context', `${formatCountOf(info.maxContext, 'token')} of ${formatCount(info.contextLength)} trained`],
    ['Vocabulary', formatCountOf(info.vocabSize, 'token')],
    ['Chat template', info.chatTemplate],
    ['File', formatBytes(info.fileBytes)],
    ['Memory', `weights ${formatBytes(weightBytes)}, KV cache ${formatBytes(kvBytes)}, activations ${formatBytes(activationBytes)}`], // prettier-ignore
    ['Kernels', `${info.kernels}, ${formatCountOf(info.numThreads, 'thread')}`],
    ['Load time', formatDuration(info.loadMs)],
    ...(sampling.length === 0 ? [] : [['Default sampling', sampling.map(([name, value]) => `${name} ${String(value)}`).join(', ')] as const]), // prettier-ignore
  ];
}
