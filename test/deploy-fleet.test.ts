// The files to deploy a fleet: without Docker or a cluster, everything in them that names a part of RuvLLM or of the same files.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseCommand } from '../src/cli/program.ts';
import { openNatsBus } from '../src/platform/node/gateway/nats-bus.ts';
import { createNatsReleaseStore } from '../src/platform/node/gateway/nats-release-store.ts';
import { MAX_FILE_BYTES } from '../src/gateway/releases/release-record.ts';
import { ROUTES } from '../src/server/routes/table.ts';
import { findFreePort, hasNats } from './support/nats-server.ts';

const folder = join(import.meta.dirname, '../deploy');
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const dockerfile = read('Dockerfile');
const version = (JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as { version: string }).version;
const quiet = { columns: 80, out: () => {}, err: () => {} };
const parses = (words: readonly string[]): Promise<unknown> => parseCommand([...words], '0.0.0', quiet);
const SHUTDOWN_S = 20; // --shutdown-timeout

/** Variables of the sources, without tests. */
const variables = new Set(
  readdirSync(join(folder, '../src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/\.(test|contract)\.ts$/.test(file))
    .flatMap((file) => readFileSync(join(folder, '../src', file), 'utf8').match(/\b(?:RUVLLM|HF)_[A-Z_]+\b/g) ?? []),
);
const ports = Array.from(dockerfile.matchAll(/^EXPOSE (\d+)$/gm), ([, port]) => Number(port));
const dataFolders = Array.from(dockerfile.matchAll(/\b(?:RUVLLM_\w+_DIR|HF_HOME)=(\S+)/g), ([, path]) => path!);
const valuesOf = (words: readonly string[], flag: string): string[] =>
  words.flatMap((word, i) => (words[i - 1] === flag ? [word] : []));
const isBelow = (path: string, mounts: readonly string[]): boolean => mounts.some((mount) => path === mount || path.startsWith(`${mount}/`)); // prettier-ignore

/** A command in a container whose root is read-only: it exists, listens for others, and writes to mounted folders only. */
async function checkCommand(
  words: readonly string[],
  names: readonly string[],
  mounts: readonly string[],
): Promise<void> {
  await parses(words);
  expect(names.filter((name) => name.startsWith('RUVLLM_') && !variables.has(name))).toEqual([]);
  const written = [...dataFolders, ...valuesOf(words, '--kv-spill')];
  expect(written.length).toBeGreaterThanOrEqual(4);
  expect(written.filter((path) => !isBelow(path, mounts))).toEqual([]);
  expect(mounts).toContain('/tmp');
  // Only serve reads RUVLLM_HOST, which the image sets.
  if (words[0] === 'gateway') expect(valuesOf(words, '--host')).toEqual(['0.0.0.0']);
  expect(names).toEqual(expect.arrayContaining(['RUVLLM_FLEET_SECRET', 'RUVLLM_SERVE_API_KEY', 'RUVLLM_NATS_URL']));
  if (words[0] === 'serve') expect(names).toEqual(expect.arrayContaining(['RUVLLM_MASTER_KEY', 'RUVLLM_ADVERTISE']));
}

/** The values of nats.conf that other files must match. */
const natsConf = read('kubernetes/nats.conf');
const valueOf = (pattern: RegExp): string => pattern.exec(natsConf)?.[1] ?? '';
const config = {
  port: Number(valueOf(/^listen: 0\.0\.0\.0:(\d+)$/m)),
  healthPort: Number(valueOf(/^http: 0\.0\.0\.0:(\d+)$/m)),
  storeDir: valueOf(/^ {2}store_dir: (\S+)$/m),
  memoryMb: Number(valueOf(/^ {2}max_memory_store: (\d+)MB$/m)),
  fileGb: Number(valueOf(/^ {2}max_file_store: (\d+)GB$/m)),
};

interface ComposeService {
  image: string;
  build?: { context: string; dockerfile: string };
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  tmpfs?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: object;
  stop_grace_period?: string;
  read_only?: boolean;
  cap_drop?: string[];
  deploy?: { resources: { limits: { cpus: string; memory: string } } };
}

const SERVICE_KEYS = ['image', 'build', 'command', 'environment', 'ports', 'volumes', 'tmpfs', 'depends_on', 'healthcheck', 'stop_grace_period', 'read_only', 'cap_drop', 'deploy', 'init', 'security_opt', 'restart']; // prettier-ignore

describe('compose.fleet.yaml', () => {
  const text = read('compose.fleet.yaml');
  const compose = parse(text, { merge: true }) as { services: Record<string, ComposeService>; volumes: object };
  const services = Object.entries(compose.services);
  const own = services.filter(([, { build }]) => build !== undefined);
  const of = (command: string) => own.filter(([, { command: words }]) => words![0] === command);

  test('has two gateways, three nodes, NATS and a database, each with known fields', () => {
    expect([of('gateway').length, of('serve').length, services.length - own.length]).toEqual([2, 3, 2]);
    for (const [name, service] of services) {
      expect([name, Object.keys(service).filter((key) => !SERVICE_KEYS.includes(key))]).toEqual([name, []]);
      expect(service.image).toMatch(/^(ruvllm|[\w./-]+:[\w.-]*\d[\w.-]*)$/); // others have a version
    }
  });

  test.each(own)('%s has an existing command, and writes to volumes', async (_name, service) => {
    const mounts = [...service.volumes!.map((volume) => volume.split(':')[1]!), ...service.tmpfs!];
    await checkCommand(service.command!, Object.keys(service.environment!), mounts);
    expect(read(join(service.build!.context, service.build!.dockerfile))).toBe(dockerfile);
    expect([service.read_only, service.cap_drop]).toEqual([true, ['ALL']]);
    expect(Number.parseInt(service.stop_grace_period!, 10)).toBeGreaterThan(SHUTDOWN_S);
    for (const port of service.ports ?? []) expect(ports).toContain(Number(port.split(':').at(-1)));
  });

  test('addresses, volumes and dependencies are those of other services', () => {
    const nodes = of('serve').map(([name]) => `http://${name}:${ports[0]}`);
    for (const [, { command }] of of('gateway')) expect(valuesOf(command!, '--node')).toEqual(nodes);
    const used = services.flatMap(([, { volumes }]) => volumes!.map((volume) => volume.split(':')[0]!));
    expect(used.filter((name) => !name.startsWith('./')).sort()).toEqual(Object.keys(compose.volumes).sort()); // and none is shared
    for (const [, { depends_on: needs = {} }] of services) {
      for (const [name, { condition }] of Object.entries(needs)) {
        expect([name, condition, compose.services[name]!.healthcheck !== undefined]).toEqual([
          name,
          'service_healthy',
          true,
        ]);
      }
    }
    const published = services.flatMap(([, { ports: list = [] }]) => list.map((port) => port.split(':')[1]));
    expect(new Set(published).size).toBe(published.length);
    const database = compose.services['postgres']!.environment!;
    for (const [, { command }] of of('serve')) {
      const [url] = valuesOf(command!, '--memory');
      expect(url).toBe(`postgres://${database['POSTGRES_USER']}:${database['POSTGRES_PASSWORD']}@postgres:5432/${database['POSTGRES_DB']}`); // prettier-ignore
    }
  });

  test('has no secret of its own: each one is required from outside', () => {
    const secrets = ['RUVLLM_FLEET_SECRET', 'RUVLLM_SERVE_API_KEY', 'RUVLLM_MASTER_KEY', 'POSTGRES_PASSWORD', 'NATS_TOKEN']; // prettier-ignore
    for (const [, { environment = {} }] of services) {
      for (const name of secrets) if (name in environment) expect(environment[name]).toMatch(new RegExp(`^\\$\\{${name}:\\?`)); // prettier-ignore
    }
  });

  test('connects nodes and gateways by NATS, under the addresses that gateways know', () => {
    const nats = compose.services['nats']!;
    for (const [name, { command, environment }] of own) {
      expect(environment!['RUVLLM_NATS_URL']).toBe(`nats://${nats.environment!['NATS_TOKEN']}@nats:${config.port}`);
      if (command![0] === 'serve') expect(environment!['RUVLLM_ADVERTISE']).toBe(`http://${name}:${ports[0]}`);
      else expect(environment).not.toHaveProperty('RUVLLM_ADVERTISE');
    }
  });

  test('NATS has a volume, limits, no published port and no rights', () => {
    const { ports: published, volumes, read_only, cap_drop, command, deploy, healthcheck } = compose.services['nats']!;
    expect([published, read_only, cap_drop]).toEqual([undefined, true, ['ALL']]);
    const mounts = volumes!.map((volume) => volume.split(':'));
    expect(mounts).toEqual([
      ['nats', config.storeDir],
      ['./kubernetes/nats.conf', '/etc/nats/nats.conf', 'ro'],
    ]);
    expect(command).toEqual(['--config', mounts[1]![1]]);
    expect(JSON.stringify(healthcheck)).toContain(`http://127.0.0.1:${config.healthPort}/healthz`);
    expect(Number.parseInt(deploy!.resources.limits.memory, 10)).toBeGreaterThan(2 * config.memoryMb);
  });

  test('the guide creates every secret', () => {
    const guide = readFileSync(join(folder, '../docs/docker.md'), 'utf8');
    const required = new Set(Array.from(text.matchAll(/\$\{(\w+):\?/g), ([, name]) => name!));
    const created = Array.from(guide.matchAll(/^([A-Z_]+)=(?:n?\$\(openssl rand|node:)/gm), ([, name]) => name!);
    expect(created.sort()).toEqual([...required].sort());
    // NATS reads a variable like a part of its file, where 7e5 is a number.
    expect(guide).toMatch(/^NATS_TOKEN=n\$\(openssl rand -hex 32\)$/m);
    expect(guide).toContain('--from-literal=nats-token=n$(openssl rand -hex 32)');
  });
});

describe('NATS', () => {
  test('is the same version and file in both, and the image has its packages', () => {
    const compose = parse(read('compose.fleet.yaml'), { merge: true }) as { services: Record<string, ComposeService> };
    const { image } = compose.services['nats']!;
    expect(image).toMatch(/^nats:\d+\.\d+\.\d+-alpine$/);
    expect(read('kubernetes/nats.yaml')).toContain(`image: ${image}\n`);
    const { peerDependencies, devDependencies } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as Record<string, Record<string, string>>; // prettier-ignore
    const packages = Object.keys(peerDependencies!).filter((name) => name.startsWith('@nats-io/'));
    expect(packages).toHaveLength(3);
    for (const name of packages) expect(dockerfile).toContain(` dependencies.${name}=${devDependencies![name]} `);
  });

  test.skipIf(!hasNats)('with this file keeps a fleet, and refuses clients without the token', async () => {
    const path = mkdtempSync(join(tmpdir(), 'ruvllm-nats-'));
    const [port, health] = [await findFreePort(), await findFreePort()];
    const local = read('kubernetes/nats.conf')
      .replace(`0.0.0.0:${config.port}`, `127.0.0.1:${port}`)
      .replace(`0.0.0.0:${config.healthPort}`, `127.0.0.1:${health}`)
      .replace(config.storeDir, join(path, 'store'));
    writeFileSync(join(path, 'nats.conf'), local);
    const token = `n${'1e5'.repeat(20)}`;
    const server = spawn('nats-server', ['--config', join(path, 'nats.conf')], { stdio: 'ignore', env: { ...process.env, NATS_TOKEN: token } }); // prettier-ignore
    const closing: (() => Promise<void>)[] = [];
    const open = async (
      login: string,
    ): Promise<{ states: string[]; store: ReturnType<typeof createNatsReleaseStore> }> => {
      const states: string[] = [];
      const store = createNatsReleaseStore({ fleet: 'test', onBeat: async () => {} });
      const bus = await openNatsBus({ url: `nats://${login}127.0.0.1:${port}`, fleet: 'test', attachment: store.attachment, onState: (state, message) => void states.push(`${state} ${message}`) }); // prettier-ignore
      closing.push(() => bus.close());
      return { states, store };
    };
    try {
      const { states, store } = await open(`${token}@`);
      await expect.poll(() => states.at(-1), { timeout: 30_000 }).toMatch(/^connected/);
      await store.putFile('x', new Uint8Array(1000));
      expect(await store.hasFile('x', 1000)).toBe(true);
      expect((await fetch(`http://127.0.0.1:${health}/healthz`)).status).toBe(200);
      for (const login of ['', 'nwrong@']) {
        const refused = await open(login);
        await expect.poll(() => refused.states.at(-1), { timeout: 30_000 }).toMatch(/authorization/i);
      }
    } finally {
      for (const close of closing) await close();
      const exit = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGKILL');
      await exit;
      rmSync(path, { recursive: true, force: true });
    }
  });
});

interface Probe {
  httpGet?: { path: string; port: string };
  tcpSocket?: { port: string };
}
interface Container {
  image: string;
  args: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { name: string; key: string }; fieldRef?: { fieldPath: string } } }[]; // prettier-ignore
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
  resources: Record<'requests' | 'limits', { cpu: string; memory: string }>;
  securityContext: object;
  startupProbe?: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
  lifecycle?: { preStop: { exec: { command: string[] } } };
}
interface PodSpec {
  containers: Container[];
  volumes: { name: string }[];
  terminationGracePeriodSeconds: number;
  securityContext: object;
  automountServiceAccountToken: boolean;
}
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec: {
    replicas: number;
    serviceName?: string;
    clusterIP?: string;
    selector: Record<string, string> & { matchLabels?: Record<string, string> };
    ports: { targetPort: string; port: number }[];
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    volumeClaimTemplates?: { metadata: { name: string }; spec: { resources: { requests: { storage: string } } } }[];
    podSelector?: { matchLabels: Record<string, string> };
    policyTypes?: string[];
    ingress?: { from: { podSelector: { matchLabels: Record<string, string> } }[]; ports: { port: string }[] }[];
  };
}

/** Fields of the API's kinds that are used here; a typo would be ignored or refused by a cluster. */
const KINDS: Record<string, { apiVersion: string; spec: readonly string[] }> = {
  Namespace: { apiVersion: 'v1', spec: [] },
  Service: {
    apiVersion: 'v1',
    spec: ['clusterIP', 'publishNotReadyAddresses', 'selector', 'ports', 'sessionAffinity'],
  },
  StatefulSet: { apiVersion: 'apps/v1', spec: ['serviceName', 'replicas', 'podManagementPolicy', 'selector', 'template', 'volumeClaimTemplates'] }, // prettier-ignore
  Deployment: { apiVersion: 'apps/v1', spec: ['replicas', 'selector', 'strategy', 'template'] },
  NetworkPolicy: { apiVersion: 'networking.k8s.io/v1', spec: ['podSelector', 'policyTypes', 'ingress'] },
  PodDisruptionBudget: { apiVersion: 'policy/v1', spec: ['maxUnavailable', 'minAvailable', 'selector'] },
};
const POD_KEYS = ['automountServiceAccountToken', 'terminationGracePeriodSeconds', 'securityContext', 'affinity', 'containers', 'volumes']; // prettier-ignore
const CONTAINER_KEYS = ['name', 'image', 'args', 'env', 'ports', 'startupProbe', 'readinessProbe', 'livenessProbe', 'lifecycle', 'resources', 'securityContext', 'volumeMounts']; // prettier-ignore
const PROBE_KEYS = ['httpGet', 'tcpSocket', 'periodSeconds', 'timeoutSeconds', 'failureThreshold'];
const unknownKeys = (value: object, known: readonly string[]): string[] => Object.keys(value).filter((key) => !known.includes(key)); // prettier-ignore

describe('kubernetes', () => {
  const kustomization = parse(read('kubernetes/kustomization.yaml')) as { namespace: string; resources: string[]; configMapGenerator: { name: string; files: string[] }[]; images: { name: string; newTag: string }[] }; // prettier-ignore
  const manifests = kustomization.resources.flatMap((file) =>
    parseAllDocuments(read(`kubernetes/${file}`)).map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as Manifest;
    }),
  );
  const of = (kind: string): Manifest[] => manifests.filter((manifest) => manifest.kind === kind);
  const workloads = [...of('StatefulSet'), ...of('Deployment')];
  const [nodes, nats, gateways] = workloads as [Manifest, Manifest, Manifest];
  const own = [nodes, gateways];
  const containerOf = ({ spec }: Manifest): Container => spec.template.spec.containers[0]!;

  test('kustomize lists every file, and the image has the version of the package', () => {
    const files = readdirSync(join(folder, 'kubernetes')).filter((file) => file !== 'kustomization.yaml');
    const maps = kustomization.configMapGenerator.flatMap((map) => map.files);
    expect([...kustomization.resources, ...maps].sort()).toEqual(files.sort());
    expect(of('Namespace')[0]!.metadata.name).toBe(kustomization.namespace);
    for (const workload of own) {
      const image = kustomization.images.find(({ name }) => name === containerOf(workload).image);
      expect(image?.newTag).toBe(version);
    }
  });

  test('kinds have their API version and known fields', () => {
    for (const { kind, apiVersion, spec = {} } of manifests) {
      expect([kind, apiVersion]).toEqual([kind, KINDS[kind]?.apiVersion]);
      expect([kind, unknownKeys(spec, KINDS[kind]!.spec)]).toEqual([kind, []]);
    }
    for (const { spec } of workloads) {
      expect(unknownKeys(spec.template.spec, POD_KEYS)).toEqual([]);
      for (const container of spec.template.spec.containers) {
        expect(unknownKeys(container, CONTAINER_KEYS)).toEqual([]);
        for (const probe of [container.startupProbe ?? {}, container.readinessProbe, container.livenessProbe]) {
          expect(unknownKeys(probe, PROBE_KEYS)).toEqual([]);
        }
      }
    }
  });

  test.each(own.map((workload) => [workload.metadata.name, workload] as const))(
    '%s has an existing command and restricted rights',
    async (_name, workload) => {
      const pod = workload.spec.template.spec;
      const container = containerOf(workload);
      expect(pod.containers).toHaveLength(1);
      const args = container.args.map((word) => (word === '$(MEMORY_URL)' ? 'postgres://user@host/base' : word));
      await checkCommand(args, container.env.map(({ name }) => name), container.volumeMounts.map(({ mountPath }) => mountPath)); // prettier-ignore
      const volumes = [...pod.volumes, ...(workload.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)];
      expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.map(({ name }) => name).sort());
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } }); // prettier-ignore
      expect(container.securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }); // prettier-ignore
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(Object.keys({ ...container.resources.requests, ...container.resources.limits }).sort()).toEqual(['cpu', 'memory']); // prettier-ignore
      const [, waits] = container.lifecycle?.preStop.exec.command ?? ['', '0'];
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(SHUTDOWN_S + Number(waits));
    },
  );

  test('probes ask routes that exist and are public, on ports that the image has', () => {
    for (const workload of own) {
      const { ports: named, startupProbe, readinessProbe, livenessProbe } = containerOf(workload);
      expect(named.map(({ containerPort }) => containerPort)).toEqual(ports);
      for (const probe of [startupProbe ?? readinessProbe, readinessProbe, livenessProbe]) {
        const { path, port } = probe.httpGet ?? { path: null, ...probe.tcpSocket! };
        expect(named.map(({ name }) => name)).toContain(port);
        if (path !== null) expect(ROUTES.find((route) => route.path === path && route.method === 'GET')?.scope).toBe('public'); // prettier-ignore
      }
      // 503 while an engine is replaced: that is not a reason to kill the process.
      expect(livenessProbe.httpGet?.path).not.toBe('/health');
    }
  });

  test('selectors match the pods, and services their ports', () => {
    const pods = workloads.map(({ spec }) => spec.template.metadata.labels);
    for (const { kind, spec } of manifests.filter((manifest) => manifest.kind !== 'Namespace')) {
      const selector = (spec.podSelector?.matchLabels ?? spec.selector.matchLabels ?? spec.selector) as Record<
        string,
        string
      >;
      const matches = pods.filter((labels) => Object.entries(selector).every(([key, value]) => labels[key] === value));
      expect([kind, matches.length]).toEqual([kind, 1]);
    }
    for (const { metadata, spec } of of('Service')) {
      for (const port of spec.ports) expect(port.targetPort).toBe(metadata.name === 'ruvllm-nats' ? 'nats' : 'http');
    }
    for (const { spec } of workloads) expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
    expect(of('PodDisruptionBudget')).toHaveLength(workloads.length);
  });

  test('gateways have the address of every node, and the same secrets', () => {
    const service = of('Service').find(({ metadata }) => metadata.name === nodes.spec.serviceName)!;
    expect(service.spec.clusterIP).toBe('None');
    const wanted = Array.from({ length: nodes.spec.replicas }, (_, i) => `http://${nodes.metadata.name}-${i}.${service.metadata.name}:${service.spec.ports[0]!.port}`); // prettier-ignore
    expect(valuesOf(containerOf(gateways).args, '--node')).toEqual(wanted);
    const keyOf = (workload: Manifest, name: string) => containerOf(workload).env.find((one) => one.name === name)!.valueFrom!.secretKeyRef; // prettier-ignore
    for (const name of ['RUVLLM_FLEET_SECRET', 'RUVLLM_SERVE_API_KEY', 'NATS_TOKEN']) expect(keyOf(nodes, name)).toEqual(keyOf(gateways, name)); // prettier-ignore
  });

  test('NATS is reached by nodes and gateways only, which know its address and token', () => {
    const service = of('Service').find(({ metadata }) => metadata.name === nats.spec.serviceName)!;
    expect(service.spec.ports.map(({ port }) => port)).toEqual([config.port]);
    const [policy, ...others] = of('NetworkPolicy');
    const labels = (workload: Manifest) => workload.spec.template.metadata.labels;
    expect([others.length, policy!.spec.podSelector!.matchLabels, policy!.spec.policyTypes]).toEqual([0, labels(nats), ['Ingress']]); // prettier-ignore
    expect(policy!.spec.ingress).toHaveLength(1);
    const [{ from, ports: open }] = policy!.spec.ingress as [NonNullable<Manifest['spec']['ingress']>[0]];
    expect(from.map(({ podSelector }) => podSelector.matchLabels)).toEqual(own.map(labels));
    expect(open.map(({ port }) => port)).toEqual(['nats']);
    for (const workload of own) {
      const { env } = containerOf(workload);
      const names = env.map(({ name }) => name);
      expect(env.find(({ name }) => name === 'RUVLLM_NATS_URL')!.value).toBe(`nats://$(NATS_TOKEN)@${service.metadata.name}:${config.port}`); // prettier-ignore
      // A variable can only contain those before it.
      expect(names.indexOf('NATS_TOKEN')).toBeLessThan(names.indexOf('RUVLLM_NATS_URL'));
    }
    const { env } = containerOf(nodes);
    const advertised = env.find(({ name }) => name === 'RUVLLM_ADVERTISE')!.value!;
    const [pod] = env.filter(({ valueFrom }) => valueFrom?.fieldRef?.fieldPath === 'metadata.name');
    const addresses = Array.from({ length: nodes.spec.replicas }, (_, i) => advertised.replace(`$(${pod!.name})`, `${nodes.metadata.name}-${i}`)); // prettier-ignore
    expect(addresses).toEqual(valuesOf(containerOf(gateways).args, '--node'));
    expect(env.indexOf(pod!)).toBeLessThan(env.findIndex(({ name }) => name === 'RUVLLM_ADVERTISE'));
  });

  test('NATS keeps its files, within limits, as a user without rights', () => {
    const { spec } = nats.spec.template;
    const container = containerOf(nats);
    const [map] = kustomization.configMapGenerator;
    expect([map!.files, spec.containers.length]).toEqual([['nats.conf'], 1]);
    expect(spec.volumes).toEqual([{ name: 'config', configMap: { name: map!.name } }]);
    const mountOf = (name: string): string => container.volumeMounts.find((mount) => mount.name === name)!.mountPath;
    expect(container.args).toEqual(['--config', `${mountOf('config')}/nats.conf`]);
    const [claim] = nats.spec.volumeClaimTemplates!;
    expect(mountOf(claim!.metadata.name)).toBe(config.storeDir);
    expect(Number.parseInt(claim!.spec.resources.requests.storage, 10)).toBeGreaterThan(config.fileGb);
    // Three releases of a file of the largest size, and room for more.
    expect(config.fileGb * 2 ** 30).toBeGreaterThan(3 * MAX_FILE_BYTES);
    expect(Number.parseInt(container.resources.limits.memory, 10)).toBeGreaterThan(2 * config.memoryMb);
    expect(container.ports.map(({ name, containerPort }) => [name, containerPort])).toEqual([['nats', config.port], ['health', config.healthPort]]); // prettier-ignore
    expect([container.readinessProbe.httpGet, container.livenessProbe.tcpSocket]).toEqual([{ path: '/healthz', port: 'health' }, { port: 'nats' }]); // prettier-ignore
    expect([spec.automountServiceAccountToken, spec.securityContext, container.securityContext]).toEqual([false, nodes.spec.template.spec.securityContext, containerOf(nodes).securityContext]); // prettier-ignore
    expect(natsConf).toContain('authorization { token: $NATS_TOKEN }');
  });

  test('the guide creates every key of the secret', () => {
    const guide = readFileSync(join(folder, '../docs/docker.md'), 'utf8');
    const keys = new Set(workloads.flatMap((workload) => containerOf(workload).env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.key ?? []))); // prettier-ignore
    const created = Array.from(guide.matchAll(/--from-literal=([\w-]+)=/g), ([, key]) => key!);
    expect(created.sort()).toEqual([...keys].sort());
    expect(guide).toContain('create secret generic ruvllm ');
  });
});

test('an option that does not exist is found', async () => {
  await expect(parses(['gateway', '--node', 'http://a:1', '--nope'])).rejects.toThrow('--nope');
});
