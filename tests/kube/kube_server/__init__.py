"""A Kubernetes for tests: an API server, a Job controller, a scheduler and kubelets in one process.

It is no Kubernetes. It is built from the documented contract (the API reference and concept pages
of Kubernetes 1.37, the subprotocol v5.channel.k8s.io of `kubectl exec`) for what the real kubectl
asks on behalf of our verbs, and does no more. What is real in it: kubectl, its wire protocol, the
schemas of each version (kubernetes-validate), and the pods, which are processes in namespaces of
their own with the files of this machine as their image. What is not: limits of memory and CPU,
networks (pods share this machine's), users, and how long a real cluster takes for anything.

    api          HTTP: discovery, create, list, watch, patch, delete; faults that a test asked for
    kinds        which kinds there are      admission    what is refused, and what is filled in
    store        objects and their history  patches      the patches that kubectl sends
    job_controller, scheduler, collector    what a control plane does about what is in the store
    job_sets     JobSet, an addition that a cluster has or has not; host names stand in /etc/hosts
    kubelet      pods that run              container    one process with its mounts
    streams      exec and logs

`kube_cluster.py` beside it is the door for tests.
"""
