import { type DashboardFiles, serveDashboardFile } from '../dashboard-files.ts';
import { refusal } from '../errors.ts';
import { json, type Route, type RouteCode, type RouteCodes } from '../route.ts';
import { textResponse } from '../text-response.ts';
import { routesOf } from './routes-of.ts';

/** Routes of the dashboard. They are public, because all data requires a key. */
export function dashboardRoutes(files: DashboardFiles): readonly Route[] {
  const serveFile: RouteCode['handle'] = ({ request }) => {
    const path = new URL(request.url).pathname;
    const file = files.get(path);
    if (file === undefined) throw refusal(404, 'unknown_url', `${JSON.stringify(path.slice(0, 200))} not found`);
    return serveDashboardFile(file, { path, headers: request.headers });
  };
  return publicRoutes({
    'GET /': { summary: 'The dashboard.', handle: serveFile },
    'GET /assets/:name': { summary: 'A file of the dashboard.', handle: serveFile },
    'GET /engine/:name': { summary: 'A file of the engine that runs in the dashboard.', handle: serveFile },
    'GET /icon.svg': { summary: 'The icon of the dashboard.', handle: serveFile },
    'GET /manifest.webmanifest': { summary: 'How browsers install the dashboard.', handle: serveFile },
    'GET /docs': {
      summary: 'The documentation.',
      handle: () => new Response(null, { status: 308, headers: { location: '/docs/' } }),
    },
    'GET /docs/:path{.*}': { summary: 'A page of the documentation.', handle: serveFile },
    // Requested first: browsers log a failed request without a key in the console.
    'GET /dashboard.json': {
      summary: 'Whether the dashboard has to ask for a key.',
      handle: ({ services }) => json({ needs_key: !services.guard.isOpen }),
    },
  });
}

/** `GET /` and `HEAD /` of a server without a dashboard: Ollama's clients ask it whether a server is there. */
export const runningRoutes: readonly Route[] = publicRoutes({
  'GET /': {
    summary: 'A text that says that the server is running.',
    handle: () =>
      textResponse('RuvLLM is running', { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } }),
  },
});

function publicRoutes(routes: RouteCodes): readonly Route[] {
  const scopes = Object.fromEntries(Object.keys(routes).map((name) => [name, 'public' as const]));
  return routesOf(async () => ({ routes }), scopes);
}
