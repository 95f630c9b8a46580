export { answerWith, chunkOf, streamOf } from './answer-with.ts';
export { countViolations, findViolations, screensOf } from './axe.ts';
export { browserPath, openBrowser } from './browser.ts';
export { answerBriefly, answerEndlessly, canRun, type DashboardServer, type DashboardServerOptions, type SharedDashboardServer, sharedDashboardServer, sharedTenant, startDashboardServer, STORIES } from './dashboard-server.ts'; // prettier-ignore
export { drawnText } from './drawn-text.ts';
export { openPage, type PageOptions, type WatchedPage } from './open-page.ts';
export { findLayoutFaults } from './layout-faults.ts';
export { scrollFrameMs, threadTimeMs } from './thread-time.ts';
