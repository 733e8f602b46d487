"""Networks, hubs, trackers, package indexes, tunnels. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, Where

# A hub that limits or restarts is mostly back within the hour.
_WAITS_S = (60.0, 300.0, 900.0, 1800.0, 1800.0)
_NOTHING = mark(
    "nothing while it waits; if it persists, try the host from the box, or fill the cache there "
    "yourself"
)

SIGNATURES = (
    Signature(
        "PXNO",
        Course.ASK,
        r"Proxy Authentication Required|\b407 (?:Client Error|Proxy)|(?i:\berror:? 407\b)"
        r"|CONNECT tunnel failed, response 40[37]\b|HTTP code 40[37] from proxy"
        r"|Tunnel connection failed: 40[37]\b",
        mark("the proxy refuses: it wants a user name and password, or blocks that address"),
        mark(
            "set http_proxy and https_proxy with user name and password, named under secrets: in "
            "job.yaml; or add the host to no_proxy"
        ),
        types="launch",
    ),
    Signature(
        "HF2",
        Course.ASK,
        r"GatedRepoError|RepositoryNotFoundError|Access to model .{0,120} is restricted"
        r"|gated repo"
        r"|\b40[13] Client Error|\b40[13][: ]+(?:Unauthorized|Forbidden)|HTTP(?: Error)? 40[13]\b"
        r"|status code:? 40[13]\b"
        r"|Invalid user token|[Ii]nvalid (?:user )?(?:token|credentials|API key)"
        r"|[Tt]oken is (?:invalid|expired)"
        r"|Repository Not Found for url|is not a valid model identifier"
        r"|have a token having permission"
        r"|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|NoCredentialsError"
        r"|[Uu]nable to locate credentials"
        r"|ExpiredToken|could not read (?:Username|Password) for|\bAuthenticationError\b"
        r"|Please provide (?:either )?a (?:valid )?token|DefaultCredentialsError"
        r"|does not have storage\.|[Aa]uthentication required\b|denied: requested access"
        r"|exceptions\.(?:Forbidden|Unauthenticated|PermissionDenied)\b|ProfileNotFound"
        r"|didn't find section in config file|unable to assume (?:the )?role"
        r"|not authorized to perform"
        r"|[Cc]ould not authenticate|Kaggle.{0,40}(?:credentials|kaggle\.json)|pull access denied"
        r"|\((?:401|403)\) (?:when calling|Reason)"
        r"|\bForbidden: 403|Error code: 40[13]\b|Authentication [Ff]ailed|Access denied$"
        r"|returned error: 40[13]\b|Response \[40[13]\]|ClientResponseError: 40[13]\b"
        # A git host's words; what it does not let one see is "not found" there.
        r"|^(?:remote|ERROR): (?:Repository not found|Permission to \S+ |Write access to )"
        r"|^remote: The project you were looking for|^fatal: repository 'https?:\S+ not found",
        mark("a service denies access: wrong token or name, or licence not accepted"),
        mark(
            "accept the licence on the model's page, and name the token under secrets: in job.yaml"
        ),
        explained_by=("HF3",),
        types="launch",
    ),
    Signature(
        "WB-OLD",
        Course.FIX_CODE,
        r"API key must be 40 characters long, yours was 86\b",
        mark("this wandb is too old for the new 86-character keys"),
        mark(
            "the key is fine: install wandb 0.22.3 or newer on the box; until then set env: "
            "{{WANDB_MODE: offline}}"
        ),
        types="launch",
    ),
    Signature(
        "U35",
        Course.ASK,
        r"api_key not configured|No API key configured|Disabled WandB due to"
        r"|wandb: ERROR (?:api_key|Unable to authenticate)"
        r"|wandb\.(?:errors\.)?(?:\w+\.)?UsageError: api_key|not logged in to (?:wandb|W&B)"
        r"|permission denied to access wandb"
        r"|(?:W&B|wandb|CommError)[^\n]{0,60}(?:[Pp]ermission denied|<Response \[40[13]\])"
        r"|MissingApiToken|requires an API key|Missing key or secret"
        r"|API key must be 40 characters|user is not logged in"
        r"|(?:ERROR|[Ii]nvalid|[Ee]xpired|[Uu]nauthor)[^\n]{0,120}relogin"
        r"|permission to access the requested resource|entity \S+ not found",
        mark("the tracker has no key here or rejects it"),
        mark("name WANDB_API_KEY under secrets: in job.yaml, or set env: {{WANDB_MODE: offline}}"),
        types="launch",
    ),
    Signature(
        "HF3",
        Course.WAIT_NETWORK,
        r"\b429\b[^\n]{0,40}(?:Too Many|Client Error|[Rr]ate)|[Tt]oo [Mm]any [Rr]equests"
        r"|[Rr]ate.?limit(?:ed|s| exceeded| reached)?\b"
        r"|(?:HTTP|Http) ?Error 429|status(?:_code| code)?[:= ]+429\b|RateLimitError"
        r"|[Rr]equest[^\n]{0,80}\b429\b|toomanyrequests"
        r"|SlowDown\b|ThrottlingException|RequestLimitExceeded|have had many accesses"
        r"|[Qq]uota exceeded for (?:this|the) file|over its data quota"
        r"|Too many users have|FileURLRetrievalError",
        mark("a service limits the request rate"),
        _NOTHING,
        waits_s=_WAITS_S,
    ),
    Signature(
        "SSL",
        Course.ASK,
        r"RequestTimeTooSkewed|CERTIFICATE_VERIFY_FAILED"
        r"|certificate verify failed|SSLCertVerificationError"
        r"|self.signed certificate"
        r"|certificate (?:has expired|is not yet valid)|server certificate verification failed",
        mark("a certificate is not trusted: a proxy uses its own, or the clock is wrong"),
        mark(
            "set the box's clock or install the proxy's certificate; verification is never turned "
            "off"
        ),
        types="audit",
    ),
    Signature(
        "PX",
        Course.WAIT_NETWORK,
        r"ProxyError|Tunnel connection failed|[Cc]annot connect to proxy|Proxy CONNECT aborted"
        r"|proxyconnect tcp"
        r"|Unsupported proxy|Missing dependencies for SOCKS support"
        r"|Unable to determine SOCKS version",
        mark("the proxy does not answer or is the wrong one"),
        mark("check http_proxy, https_proxy and no_proxy under env:, in lower and upper case"),
        waits_s=_WAITS_S,
    ),
    Signature(
        "HF1",
        Course.WAIT_NETWORK,
        r"LocalEntryNotFoundError|couldn't connect to ['\"]?https?://|(?:huggingface\.co"
        r"|hf\.co|hf-mirror\.com|modelscope|cdn-lfs|xethub)[^\n]{0,300}"
        r"(?:[Tt]imed? ?out|Max retries|Connection|5\d\d Server Error|unreachable"
        r"|RemoteDisconnected|reset)"
        r"|(?:[Tt]imeout|MaxRetryError|ConnectionError"
        r"|5\d\d Server Error)[^\n]{0,300}(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope)"
        r"|Error while downloading from https?://\S*(?:hf\.co|huggingface)"
        r"|Consistency check failed: file should be of size"
        r"|ReqwestMiddleware|CAS (?:service|[Cc]lient) [Ee]rror|offline mode is enabled"
        r"|OfflineModeIsEnabled"
        r"|[Cc]ouldn't reach (?:the )?['\"\w./-]+ (?:on the Hub|\()"
        r"|ConnectionError: Couldn't reach",
        mark("a model or dataset hub did not answer"),
        mark(
            "nothing while it waits; if it persists, set HF_ENDPOINT to a mirror or fill the "
            "cache on the box yourself"
        ),
        waits_s=_WAITS_S,
    ),
    Signature(
        "WB1",
        Course.WAIT_NETWORK,
        r"wandb: (?:Network error|ERROR Error (?:communicating|while calling)"
        r"|ERROR .{0,60}timed? ?out)|CommError|wandb[\w.]*: .{0,80}(?:[Tt]imed out|timeout)"
        r"|Run initialization has timed out|Error communicating with (?:backend|wandb process)"
        r"|Couldn't communicate with backend"
        r"|(?:api\.wandb\.ai|comet\.com|neptune\.ai|mlflow|swanlab)[^\n]{0,200}"
        r"(?:[Tt]imed? ?out|Max retries|Connection|5\d\d|unreachable|502|503)"
        r"|MlflowException: API request .{0,160}failed with (?:exception|error code 5)"
        r"|wandb\.errors\.(?:\w+\.)?(?:WandbAttach|ServiceStart\w*|MailboxClosed)\w*"
        r"|Failed to (?:connect to|start) (?:the )?wandb"
        r"|wandb (?:backend|service|core) process[^\n]{0,40}(?:shut ?down|died|exited)",
        mark("a tracker did not answer"),
        mark(
            "nothing while it waits; to train without the tracker, set env: {{WANDB_MODE: offline}}"
        ),
        waits_s=_WAITS_S,
    ),
    Signature(
        "T6",
        Course.ASK,
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed",
        mark("the box's host key has changed"),
        mark("check the new fingerprint against the platform's page before accepting it"),
        types="audit",
    ),
    Signature(
        "T7",
        Course.ASK,
        r"Permission denied \([\w,-]*publickey|Too many authentication failures",
        mark("ssh rejects your keys"),
        mark("add your public key to the box or the account"),
        types="audit",
    ),
    Signature(
        "T8",
        Course.WAIT_NETWORK,
        r"kex_exchange_identification|during banner exchange|ssh: connect to host"
        r"|ssh_exchange_identification|^Connection (?:closed|reset) by \S+ port \d+",
        mark("ssh cannot connect"),
        _NOTHING,
        waits_s=_WAITS_S,
    ),
    Signature(
        "T9",
        Course.ASK,
        r"subsystem request failed|exec request failed",
        mark("this ssh connection cannot transfer files"),
        mark("use the direct endpoint, not the platform's ssh proxy"),
        types="audit",
    ),
    Signature(
        "T5",
        Course.FIX_CONFIG,
        r'dest open "[^"]*": (?:Failure|No such file)|rsync: .{0,120}(?:mkdir'
        r"|change_dir)[^\n]{0,200}failed: No such file"
        r"|rsync error: error selecting input/output files",
        mark("the target folder does not exist"),
        mark("create the folder first, in the same command"),
    ),
    Signature(
        "T2",
        Course.WAIT_NETWORK,
        r"client_loop: send disconnect|Read from remote host .{0,80}reset"
        r"|rsync error: (?:error in rsync protocol|timeout|error in socket|unexplained error)"
        r"|rsync: connection unexpectedly closed|packet_write_wait"
        r"|[Cc]onnection closed by remote host|ssh: .{0,80}Broken pipe",
        mark("the connection to the box was lost"),
        mark("retry the transfer: it continues where it stopped"),
        waits_s=(5.0, 60.0, 300.0),
    ),
    Signature(
        "PIP",
        Course.WAIT_NETWORK,
        r"(?:pypi\.org|files\.pythonhosted\.org|conda\.anaconda\.org|download\.pytorch\.org"
        r"|pypi\.tuna|mirrors?\.(?:aliyun|tuna|ustc))[^\n]{0,200}"
        r"(?:[Tt]imed? ?out|Max retries|Connection|5\d\d|reset)|CondaHTTPError"
        r"|HTTP 000 CONNECTION FAILED|after connection broken by '[^\n]{0,400}: /\S*simple/"
        r"|E: (?:Failed to fetch|Unable to fetch some archives)|Hash Sum mismatch"
        r"|pip\._vendor\.urllib3\.exceptions\.\w*(?:Timeout|Protocol|NewConnection)\w*",
        mark("a package index did not answer"),
        _NOTHING,
        waits_s=_WAITS_S,
    ),
    Signature(
        "HTTP404",
        Course.FIX_CONFIG,
        r"[Ff]ailed: 404\b|\(404\) when calling|EntryNotFoundError|RevisionNotFoundError"
        r"|\b404 Client Error|returned error: 404\b"
        r"|HTTP Error 404|NoSuchKey"
        r"|NoSuchBucket|\b404: Not Found"
        r"|does not appear to have a file named|manifest (?:for \S+ )?not found"
        r"|ImagePullBackOff|ErrImagePull|Can't load (?:the )?[\w ]{4,30} for ",
        mark("the server does not have what was requested"),
        mark("correct the name, the revision or the URL"),
        explained_by=("HF1", "DNS"),
    ),
    Signature(
        "DNS",
        Course.WAIT_NETWORK,
        r"[Nn]ame or service not known|[Tt]emporary failure in name resolution"
        r"|NameResolutionError|gaierror"
        r"|[Cc]ould not resolve (?:host|hostname|proxy)|nodename nor servname provided"
        r"|No address associated with hostname"
        r"|Failed to resolve ['\"]|EAI_AGAIN|getaddrinfo (?:failed|ENOTFOUND)|dns error"
        r"|server misbehaving",
        mark("a host name could not be resolved"),
        _NOTHING,
        waits_s=_WAITS_S,
    ),
    Signature(
        "HTTP5XX",
        Course.WAIT_NETWORK,
        r"\b5\d\d Server Error|HTTP Error 5\d\d|\b50[0234] (?:Bad Gateway|Gateway Time-?out"
        r"|Service (?:Temporarily )?Unavailable|Internal Server Error)"
        r"|[Gg]ateway [Tt]ime-?out|[Bb]ad [Gg]ateway|Service Unavailable|Internal Server Error"
        r"|InternalServerError|HTTPError: 5\d\d|(?:status(?:_code| code)?|HTTP)[:= ]+5\d\d\b"
        r"|Response \[5\d\d\]"
        r"|(?:msg|message|error)[^\n]{0,120}['\"](?:code|status)['\"]: ?50[0-4]\b"
        r"|The requested URL returned error: 5\d\d",
        mark("a server error (HTTP 5xx)"),
        _NOTHING,
        waits_s=_WAITS_S,
    ),
    Signature(
        "NET",
        Course.WAIT_NETWORK,
        r"^(?:[\w.]+\.)?(?:ConnectTimeout|ReadTimeout|ConnectionTimeout\w*|SSLError"
        r"|SSLEOFError|ConnectError|ReadError|RemoteProtocolError|MaxRetryError"
        r"|NewConnectionError"
        r"|ProtocolError|IncompleteRead|ChunkedEncodingError|RemoteDisconnected"
        r"|ServerDisconnectedError|ClientConnectorError|ClientOSError|ClientPayloadError"
        r"|EndpointConnectionError|ReadTimeoutError|ConnectTimeoutError|URLError"
        r"|ServerTimeoutError|ContentTooShortError|ConnectionRefusedError|APIConnectionError"
        r"|FSTimeoutError|ServiceUnavailable|ResponseStreamingError)\b"
        r"|(?:requests|urllib3|aiohttp|httpx|httpcore|botocore"
        r"|http\.client)\.[\w.]*(?:Connection|Timeout|Retr|Protocol|Disconnected"
        r"|IncompleteRead)\w*"
        r"|Max retries exceeded|Connection to \S+ timed out|^(?:socket\.)?timeout: "
        r"|(?:[Cc]onnection|[Rr]ead|[Dd]ownload|[Rr]equest|[Uu]pload) (?:has )?timed out"
        r"|[Nn]etwork is unreachable|No route to host|The read operation timed out"
        r"|[Cc]onnection (?:was )?(?:aborted|refused)|RPC failed; (?:curl|HTTP)|early EOF"
        r"|fetch-pack: |unable to access 'https?://|Failed to connect to \S+ port"
        r"|curl: \((?:6|7|18|28|35|52|56|92)\)|OpenSSL SSL_(?:connect|read)|GnuTLS recv error"
        r"|UNEXPECTED_EOF_WHILE_READING|retrieval incomplete: got only|wget: unable to"
        r"|\bNet(?:work)?(?:Connection)?Error\b|\bUNAVAILABLE: |DEADLINE_EXCEEDED"
        r"|request canceled while waiting|Client\.Timeout exceeded|i/o timeout"
        r"|TLS handshake timeout"
        r"|[Uu]nable to connect to (?:the )?endpoint|[Cc]url returned error code|curlCode: "
        r"|Could not connect to the endpoint|连接超时|拒绝连接|网络不可达",
        mark("the network failed"),
        _NOTHING,
        waits_s=_WAITS_S,
        is_general=True,
    ),
    Signature(
        "RESET",
        Course.WAIT_NETWORK,
        r"^(?:[\w.]+\.)?(?:ConnectionResetError|BrokenPipeError|ConnectionAbortedError"
        r"|ConnectionError|TimeoutError|HTTPError|HfHubHTTPError|APIError)\b"
        r"|Connection reset by peer|Broken pipe\b",
        mark("a connection was lost"),
        _NOTHING,
        waits_s=_WAITS_S,
        is_general=True,
        is_symptom=True,
    ),
    Signature(
        "API-CAP",
        Course.WAIT_NETWORK,
        r"insufficient.capacity|no_such_ask"
        r"|Insufficient (?:[\w.]+/)?(?:gpu|nvidia|cpu|memory|pods)\b"
        r"|\b0/\d+ nodes are available|FailedPlacement|[Uu]nschedulable"
        r"|does not have a host assigned|FailedScheduling"
        r"|CapacityError|(?:not have|without) enough resources|node types can fulfill"
        r"|InsufficientInstanceCapacity|ZONE_RESOURCE_POOL_EXHAUSTED"
        r"|no longer any instances available|out of (?:stock|capacity)|sold ?out|GPU资源不足"
        r"|库存不足|显卡不足|资源已售罄",
        mark("the platform has no such machine available"),
        mark("wait, or use another GPU type or region"),
        waits_s=_WAITS_S,
    ),
    Signature(
        "API-MONEY",
        Course.STOP_QUEUE,
        r"low_credit|insufficient (?:funds|balance|credit)|Payment Required|\b402 Client Error"
        r"|余额不足|欠费|[Bb]alance is (?:too low|insufficient)",
        mark("the account is out of credit"),
        mark("pull the verified results, then top up"),
        types="pull",
        where=Where.ANYWHERE,
    ),
    Signature(
        "API-AUTH",
        Course.STOP_QUEUE,
        r"invalid-api-key|TORealName|InvalidApiKey|未实名",
        mark("the platform rejects the account's key"),
        mark("renew the key at the platform"),
        types="audit",
    ),
)
