{{- define "provost.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "provost.image" -}}
{{- $it := .Values.image -}}
{{- if $it.digest -}}
{{ $it.repository }}@{{ $it.digest }}
{{- else -}}
{{ $it.repository }}:{{ $it.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "provost.selector" -}}
{{ include "provost.common" . }}
app.kubernetes.io/component: daemon
{{- end }}

{{- define "provost.common" -}}
app.kubernetes.io/name: provost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "provost.labels" -}}
{{ include "provost.common" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* What must not be installed, with what to do. */}}
{{- define "provost.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.store.url) -}}
{{- fail "replicas above 1 are hosts that share a database: set store.url" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.join.secret.name) -}}
{{- fail "hosts beside the first join with a key: install with one replica, run `provost host export-key` there, and set join.secret" -}}
{{- end -}}
{{- if and .Values.store.url .Values.migrate.enabled (not .Values.migrate.url) -}}
{{- fail "migrate.url has to name the database with the role that owns the tables; or set migrate.enabled to false, and run `provost store migrate` yourself before each upgrade" -}}
{{- end -}}
{{- if and (eq .Values.jail.tier "ns") (eq .Values.jail.seccompProfile.type "Localhost") (not .Values.jail.seccompProfile.localhostProfile) -}}
{{- fail "jail.seccompProfile.localhostProfile has to name the profile on the nodes" -}}
{{- end -}}
{{- end }}

{{/* The settings of all hosts, with keys that stand before the first section. */}}
{{- define "provost.toml" -}}
{{- if .Values.store.url }}
store.url = {{ .Values.store.url | toJson }}
store.name = {{ .Values.repository.name | toJson }}
{{- if .Values.store.passwordSecret.name }}
store.password = "database"
{{- end }}
{{- if .Values.store.caSecret.name }}
store.ca = "/etc/provost-database/ca.crt"
{{- end }}
{{- end }}
metrics.enabled = true
metrics.listen = "0.0.0.0:{{ .Values.metrics.port }}"
metrics.elsewhere = true
{{- if .Values.policy }}
policy.file = "/etc/provost/rules.toml"
{{- end }}
{{- with .Values.config }}

{{ . }}
{{- end }}
{{- end }}

{{- define "provost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "provost.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
{{- end }}
