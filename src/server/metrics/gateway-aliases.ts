import type { ModelHost } from '../../runtime/requests/model-host.ts';
import type { Clock } from '../../core/clock.ts';
import type { EngineReading } from './engine-reading.ts';
import type { MetricRegistry, Sample } from './registry.ts';

interface AliasSources {
  readonly models: ModelHost;
  readonly clock: Clock;
}

/**
 * Adds the names of vLLM that gateways read to choose a server: the endpoint pickers of the Gateway API inference extension find them
 * without settings of their own.
 */
export function addGatewayAliases(
  registry: MetricRegistry,
  { models, clock }: AliasSources,
  engines: readonly EngineReading[],
): void {
  const gauge = (name: string, help: string, read: (stats: NonNullable<EngineReading['stats']>) => number): void =>
    registry.gauge(name, help, () =>
      engines.flatMap(({ id, stats }): Sample[] =>
        stats === null ? [] : [{ labels: { model_name: id }, value: read(stats) }],
      ),
    );
  gauge('vllm:num_requests_running', 'Alias of ruvllm_sequences_running for gateways.', ({ numRunning }) => numRunning);
  gauge('vllm:num_requests_waiting', 'Alias of ruvllm_sequences_waiting for gateways.', ({ numWaiting }) => numWaiting);
  const readUsage = ({ numPages, numFreePages }: NonNullable<EngineReading['stats']>): number =>
    numPages === 0 ? 0 : (numPages - numFreePages) / numPages;
  gauge('vllm:kv_cache_usage_perc', 'Share of KV pages that running sequences use, 0 to 1, for gateways.', readUsage);
  gauge('vllm:gpu_cache_usage_perc', 'Earlier name of vllm:kv_cache_usage_perc.', readUsage);
  registry.gauge('vllm:lora_requests_info', 'When its labels were read; they name the loaded adapters.', () => {
    const names = models.list().flatMap(({ id, model }) =>
      // Adapters of one tenant are requested by that tenant only.
      (model?.adapters() ?? []).flatMap(({ name, tenant }) => (tenant === null ? [`${id}:${name}`] : [])),
    );
    // There is no fixed number of adapters: a gateway sees room for one more.
    const labels = {
      max_lora: String(names.length + 1),
      running_lora_adapters: names.join(','),
      waiting_lora_adapters: '',
    };
    return [{ labels, value: clock.wallClock() / 1000 }];
  });
}
